// The proof of logs for people: npm run prove:logs -- --seconds 60
// Ends with 0 when a read_committed reader that is not our client found every event once, in order, and nothing else.
import { parseArgs } from "node:util";
import { type Progress, proveExactlyOnce } from "./proof.ts";
import { describeReport } from "./report.ts";
import type { Sabotage } from "./scene.ts";

const USAGE = `usage: npm run prove:logs -- [--seconds 60] [--source managed|wal|both] [--seed N] [--writers 8]
         [--postgres 15|18] [--failover] [--sabotage at-least-once|forget-ledger|read-uncommitted]

Writers insert, relays deliver exactly once into Kafka, and for so many seconds relays, brokers and PostgreSQL are
killed, stopped and paused at random. A seed draws the same blows again; when exactly they fall is up to the machine.
--failover also promotes a standby that lacks the last commits: of the managed outbox only.
--sabotage takes the guarantee away, and the run must fail.`;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    source: { type: "string", default: "both" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    writers: { type: "string", default: "8" },
    postgres: { type: "string", default: "18" },
    failover: { type: "boolean", default: false },
    sabotage: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const [seconds, seed, writers] = [Number(values.seconds), Number(values.seed), Number(values.writers)];
const sources = (["managed", "wal"] as const).filter((it) => values.source === it || values.source === "both");
const version = values.postgres === "15" ? 15 : values.postgres === "18" ? 18 : undefined;
const ways: readonly string[] = ["at-least-once", "forget-ledger", "read-uncommitted"] satisfies Sabotage[];
const sabotage = values.sabotage as Sabotage | undefined;
const areValuesRight =
  seconds > 0 && Number.isInteger(seed) && writers > 0 && (sabotage === undefined || ways.includes(sabotage));
if (values.help || sources.length === 0 || version === undefined || !areValuesRight) {
  console.error(USAGE);
  process.exit(2);
}

const again = [
  `npm run prove:logs -- --seconds ${seconds} --source ${values.source} --seed ${seed} --writers ${writers}`,
  `--postgres ${version}`,
  ...(values.failover ? ["--failover"] : []),
  ...(sabotage === undefined ? [] : [`--sabotage ${sabotage}`]),
].join(" ");
console.log(`again with: ${again}`);

const PROGRESS_EVERY_MS = 5_000;

async function prove(source: "managed" | "wal"): Promise<boolean> {
  const startedMs = performance.now();
  let toldMs = startedMs;
  const log = (line: string) => {
    const elapsed = ((performance.now() - startedMs) / 1_000).toFixed(1).padStart(6);
    console.log(`${elapsed} s  ${source.padEnd(7)}  ${line}`);
  };
  const onProgress = ({ kills, restarts, written, cutOpen, late }: Progress) => {
    if (performance.now() - toldMs < PROGRESS_EVERY_MS) return;
    toldMs = performance.now();
    const struck = `${kills} relays killed, ${restarts} restarts of PostgreSQL`;
    log(`${written} events written, ${struck}, ${cutOpen} transactions cut open, ${late} requests late`);
  };
  const report = await proveExactlyOnce({
    ...{ source, seed, version: version!, writers, log, onProgress, brokers: 1, relays: 2 },
    ...{ kills: Number.POSITIVE_INFINITY, secondsMax: seconds, transactionTimeoutMs: 5_000 },
    replicated: values.failover && source === "managed",
    ...(sabotage === undefined ? {} : { sabotage }),
  });
  console.log(`\n${describeReport(report)}\n`);
  return report.verdict.violations.length === 0;
}

let isProved = true;
for (const source of sources) isProved = (await prove(source)) && isProved;
if (!isProved) {
  console.error(`FAILED; again with: ${again}`);
  process.exitCode = 1;
}
