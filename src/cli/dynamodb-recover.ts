import { loadDynamoDbRunConfig } from "../config/dynamodb-config.ts";
import { systemClock } from "../core/clock.ts";
import { reasonOf } from "../core/errors.ts";
import { lambdaContext } from "../lambda/local/lambda-context.ts";
import { recoverRelays } from "../lambda/local/recover-relays.ts";
import { configSources } from "./config-sources.ts";
import { DynamoDbParts } from "./dynamodb-parts.ts";
import { printJson } from "./events-commands.ts";
import { EXIT } from "./exit.ts";
import { Signals } from "./signals.ts";

interface RecoverFlags {
  readonly all?: boolean;
  readonly output: "text" | "json";
}

/** `outbox-relay dynamodb recover`: 0 all is relayed or waits for its retry, 5 something could not be written down. */
export async function recoverCommand({ all = false, output }: RecoverFlags): Promise<number> {
  const config = await loadDynamoDbRunConfig(configSources());
  const parts = new DynamoDbParts(config);
  const signals = new Signals();
  const stopping = new AbortController();
  void signals.toEnd.then(() => stopping.abort());
  const isWatched = process.stderr.isTTY && output === "text";
  let failures = 0;
  parts.bus.on("IntentRelayFailed", ({ reason, recordId }) => {
    failures += 1;
    if (output === "text") process.stderr.write(`not delivered: ${recordId}: ${reasonOf(reason, 300)}\n`);
  });
  try {
    const recovered = await recoverRelays({
      table: config.table,
      link: parts.link,
      stream: await parts.stream(),
      checkpoints: parts.checkpoints,
      handlers: parts.handlers,
      isAll: all,
      context: () => lambdaContext(systemClock, config.timing.invocationMs),
      signal: stopping.signal,
      progress: (looked, found) => {
        if (isWatched) process.stderr.write(`\r\u001b[2Klooked at ${looked} items, ${found} of them never tried`);
      },
    });
    if (isWatched) process.stderr.write("\r\u001b[2K");
    const { failed, found, looked, relays } = recovered;
    if (output === "json") printJson({ relays, looked, found, failures, unsettled: failed });
    else if (relays.length === 0) process.stdout.write("no relay is halted; --all searches for all of them\n");
    else {
      const names = relays.join(", ");
      process.stdout.write(
        `${names}: ${looked} items looked at, ${found} handed to their relay, ${failures} attempts failed\n`,
      );
    }
    return failed > 0 || stopping.signal.aborted ? EXIT.partly : EXIT.ok;
  } finally {
    signals.stop();
    await parts.close();
  }
}
