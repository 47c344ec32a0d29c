import type { Command } from "commander";
import type { SmokeResult } from "../../operations/smoke/smoke.ts";
import { type End, EXIT, Exit } from "../../service/exit.ts";
import { countBar } from "../../service/progress.ts";
import { durationMs } from "../terminal/duration.ts";
import { type Form, printJson } from "../terminal/output.ts";

interface SmokeFlags {
  readonly table: string;
  readonly type: string;
  readonly timeout: string;
  readonly url?: string;
  readonly output: Form;
}

const HEALTH_MS = 5_000;

/** `outbox-relay smoke`. */
export function addSmokeCommand(program: Command, end: End): void {
  program
    .command("smoke")
    .description("write a test event to an outbox and wait for its delivery: 0 delivered, 1 not delivered")
    .requiredOption("--table <schema.table>", "an outbox table that a running relay reads")
    .option("--type <type>", "event type; consumers of the destination receive the event", "outbox-relay.smoke")
    .option("--timeout <time>", "how long to wait", "30s")
    .option("--url <address>", "address of a running relay, whose health is checked first")
    .action(async (flags: SmokeFlags) => {
      end(await run(flags));
    });
}

async function run({ output, table, timeout, type, url }: SmokeFlags): Promise<number> {
  const timeoutMs = durationMs("--timeout", timeout);
  const { parseTableName } = await import("../../postgres/identifiers.ts");
  const { smoke } = await import("../../operations/smoke/smoke.ts");
  const { withTarget } = await import("../operation-target.ts");
  const name = parseTableName(table);
  if (url !== undefined) await requireHealth(url);
  if (output === "text") {
    process.stderr.write(
      `Writing a test event of type ${type} to ${table}. Consumers of the destination will receive it.\n`,
    );
  }
  return await withTarget(async (target) => {
    const bar = countBar(process.stderr);
    const seconds = Math.ceil(timeoutMs / 1_000);
    const onWait = (waitedMs: number) => bar.show(Math.min(seconds, Math.round(waitedMs / 1_000)), seconds);
    let result: SmokeResult;
    try {
      result = await smoke(target, { table: name, type, timeoutMs, onWait });
    } finally {
      bar.end();
    }
    if (output === "json") printJson(result);
    else process.stdout.write(`${resultText(result)}\n`);
    return result.outcome === "delivered" ? EXIT.ok : EXIT.failed;
  });
}

function resultText({ id, outcome, reason, waitedMs }: SmokeResult): string {
  if (outcome === "delivered") return `delivered after ${waitedMs} ms: event ${id}`;
  const why = reason === null ? "" : `: ${reason}`;
  return outcome === "dead"
    ? `event ${id} is a dead letter${why}`
    : `event ${id} was not delivered within ${waitedMs} ms${why}`;
}

/** A degraded relay still delivers what it can; only an unhealthy one makes the test pointless. */
async function requireHealth(url: string): Promise<void> {
  const address = URL.parse("/health", url);
  if (address === null || !/^https?:$/.test(address.protocol)) {
    throw new Exit(EXIT.usage, [`--url is ${JSON.stringify(url)}: write an address like http://127.0.0.1:3012`]);
  }
  const answer = await fetch(address, { signal: AbortSignal.timeout(HEALTH_MS) }).then(
    async (response) => ({ isGood: response.ok, text: await response.text() }),
    (error: unknown) => ({ isGood: false, text: String((error as { cause?: unknown }).cause ?? error) }),
  );
  if (answer.isGood) return;
  throw new Exit(EXIT.failed, [`The relay at ${url} is not healthy: ${answer.text.slice(0, 500)}`]);
}
