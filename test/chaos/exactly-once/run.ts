// The proof of exactly once for people: npm run prove:exactly-once -- --kills 100
// Ends with 0 when a read_committed reader that is not our client found every event once, in order, and nothing else.
import { parseArgs } from "node:util";
import { surviveOutage } from "./outage.ts";
import { type Progress, proveExactlyOnce } from "./proof.ts";
import { describeReport, shortfalls } from "./report.ts";
import type { Sabotage } from "./scene.ts";

const USAGE = `usage: npm run prove:exactly-once -- [--kills 100] [--seconds N] [--brokers 1|3] [--relays 2|3]
         [--seed N] [--postgres 15|18] [--no-failover | --behind SECONDS] [--sabotage WAY]
       npm run prove:exactly-once -- --outage 60 [--brokers 1|3] [--seed N] [--postgres 15|18]

A seed draws the same blows and faults again; when exactly they fall is up to the machine.
--behind says how far the standby lags that is promoted in the middle (2).
--sabotage takes the guarantee away, and the run must fail: it shows that the checker sees what it should. The ways are
at-least-once, forget-ledger (a new owner does not look what the former one delivered) and read-uncommitted.
--outage does something else: all brokers are down for so many seconds, and nothing may be lost, doubled or given up.`;

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    seconds: { type: "string", default: "3600" },
    brokers: { type: "string", default: "1" },
    relays: { type: "string", default: "2" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    postgres: { type: "string", default: "18" },
    "no-failover": { type: "boolean", default: false },
    behind: { type: "string", default: "2" },
    sabotage: { type: "string" },
    outage: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
const [kills, secondsMax, seed] = [Number(values.kills), Number(values.seconds), Number(values.seed)];
const brokers = values.brokers === "1" ? 1 : values.brokers === "3" ? 3 : undefined;
const relays = Number(values.relays);
const version = values.postgres === "15" ? 15 : values.postgres === "18" ? 18 : undefined;
const sabotage = values.sabotage as Sabotage | undefined;
const ways = ["at-least-once", "forget-ledger", "read-uncommitted"] satisfies Sabotage[] as string[];
const isSabotageKnown = sabotage === undefined || ways.includes(sabotage);
const outageSeconds = values.outage === undefined ? undefined : Number(values.outage);
const areNumbersRight =
  kills > 0 &&
  Number(values.behind) >= 0 &&
  (outageSeconds ?? 1) > 0 &&
  secondsMax > 0 &&
  Number.isInteger(seed) &&
  relays >= 2 &&
  relays <= 9;
if (values.help || brokers === undefined || version === undefined || !isSabotageKnown || !areNumbersRight) {
  console.error(USAGE);
  process.exit(2);
}

const again = [
  `--kills ${kills} --brokers ${brokers} --relays ${relays} --seed ${seed} --postgres ${version}`,
  ...(values["no-failover"] ? ["--no-failover"] : [`--behind ${values.behind}`]),
  ...(sabotage === undefined ? [] : [`--sabotage ${sabotage}`]),
  ...(outageSeconds === undefined ? [] : [`--outage ${outageSeconds}`]),
].join(" ");
console.log(`again with: npm run prove:exactly-once -- ${again}`);

const isTerminal = process.stdout.isTTY === true;
const startedMs = performance.now();
const elapsed = () => `${((performance.now() - startedMs) / 1_000).toFixed(0).padStart(4)} s`;

function log(line: string): void {
  if (isTerminal) process.stdout.write("\r\x1b[K");
  console.log(`${elapsed()}  ${line}`);
}

function showProgress({ kills: done, written, cutOpen, late }: Progress): void {
  if (!isTerminal) return;
  const width = 30;
  const filled = Math.round((done / kills) * width);
  const bar = `${"█".repeat(filled)}${"░".repeat(width - filled)}`;
  process.stdout.write(`\r\x1b[K${bar} ${done}/${kills} kills, ${written} events, ${cutOpen} cut open, ${late} late`);
}

const common = { seed, brokers, relays, version, log, transactionTimeoutMs: 10_000 } as const;

async function proveOutage(seconds: number): Promise<boolean> {
  const { verdict, ...figures } = await surviveOutage({ ...common, seconds });
  console.log(`\n${verdict.events} events, ${verdict.violations.length} violations, ${JSON.stringify(figures)}`);
  for (const violation of verdict.violations.slice(0, 20)) console.log(JSON.stringify(violation));
  return verdict.violations.length === 0 && figures.attemptsSpent === 0 && figures.holds === 0;
}

async function proveKills(): Promise<boolean> {
  const report = await proveExactlyOnce({
    ...common,
    ...{ kills, secondsMax, onProgress: showProgress },
    replicated: !values["no-failover"],
    behindMs: Number(values.behind) * 1_000,
    ...(sabotage === undefined ? {} : { sabotage }),
  });
  console.log(`\n${describeReport(report)}`);
  for (const shortfall of shortfalls(report)) console.log(`note: ${shortfall}`);
  return report.verdict.violations.length === 0;
}

const isProved = outageSeconds === undefined ? await proveKills() : await proveOutage(outageSeconds);
if (!isProved) {
  console.error(`\nFAILED; again with: npm run prove:exactly-once -- ${again}`);
  process.exitCode = 1;
}
