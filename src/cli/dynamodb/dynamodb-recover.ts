import { loadDynamoDbRunConfig } from "../../config/sources/dynamodb-config.ts";
import { systemClock } from "../../core/clock.ts";
import { reasonOf } from "../../core/errors.ts";
import { lambdaContext } from "../../dynamodb-runner/invocation.ts";
import { recoverRelays } from "../../dynamodb-runner/recover-relays.ts";
import { DynamoDbParts } from "../../service/dynamodb-parts.ts";
import { EXIT } from "../../service/exit.ts";
import { Signals } from "../../service/signals.ts";
import { configSources } from "../config-sources.ts";
import { printErrors } from "../terminal/error-output.ts";
import { type Form, printJson } from "../terminal/output.ts";

interface RecoverFlags {
  readonly all?: boolean;
  readonly output: Form;
}

/**
 * `outbox-relay dynamodb recover`. Exits with 0 if every intent is relayed or waits for its retry, 5 if some could not
 * be stored.
 */
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
    if (output === "text") printErrors([`not delivered: ${recordId}: ${reasonOf(reason, 300)}`]);
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
        if (isWatched) process.stderr.write(`\r\u001b[2Kscanned ${looked} items, found ${found} that were never tried`);
      },
    });
    if (isWatched) process.stderr.write("\r\u001b[2K");
    const { failed, found, looked, relays } = recovered;
    if (output === "json") printJson({ relays, looked, found, failures, unsettled: failed });
    else if (relays.length === 0) process.stdout.write("no relay is halted; --all recovers all of them\n");
    else {
      const names = relays.join(", ");
      process.stdout.write(
        `${names}: ${looked} items scanned, ${found} passed to their relay, ${failures} attempts failed\n`,
      );
    }
    return failed > 0 || stopping.signal.aborted ? EXIT.partly : EXIT.ok;
  } finally {
    signals.stop();
    await parts.close();
  }
}
