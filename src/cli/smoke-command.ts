import { type Command, Option } from "commander";
import type { SmokeResult } from "../operations/smoke.ts";
import { durationMs } from "./duration.ts";
import { type End, EXIT, Exit } from "./exit.ts";
import { countBar } from "./progress.ts";

interface SmokeFlags {
  readonly table: string;
  readonly type: string;
  readonly timeout: string;
  readonly url?: string;
  readonly output: "text" | "json";
}

const HEALTH_MS = 5_000;

export function addSmokeCommand(program: Command, end: End): void {
  program
    .command("smoke")
    .description("write one test event into an outbox and wait until it is delivered: 0 it was, 1 it was not")
    .requiredOption("--table <schema.table>", "an outbox table that a running relay reads")
    .option("--type <type>", "of the event; whoever reads the destination gets it", "outbox-relay.smoke")
    .option("--timeout <time>", "how long it may take", "30s")
    .option("--url <address>", "of a running relay, whose health is asked for first")
    .addOption(new Option("-o, --output <form>").choices(["text", "json"]).default("text"))
    .action(async (flags: SmokeFlags) => {
      end(await run(flags));
    });
}

async function run({ output, table, timeout, type, url }: SmokeFlags): Promise<number> {
  const timeoutMs = durationMs("--timeout", timeout);
  const { parseTableName } = await import("../postgres/identifiers.ts");
  const { smoke } = await import("../operations/smoke.ts");
  const { withTarget } = await import("./operation-target.ts");
  const name = parseTableName(table);
  if (url !== undefined) await requireHealth(url);
  process.stderr.write(`A test event of type ${type} is written into ${table}; it reaches the destination.\n`);
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
    process.stdout.write(output === "json" ? `${JSON.stringify(result)}\n` : `${resultText(result)}\n`);
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

/** A relay that is degraded delivers what it can; only an unhealthy one is no use to ask. */
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
