// The proof for requests in an event store: npm run prove:requests -- --requests 500
// Ends with 0 when every request has one outcome in the log and every event that asks for a job became one.
import { parseArgs } from "node:util";
import { proveRequests } from "./proof.ts";
import { describeReport } from "./report.ts";

const USAGE = `usage: npm run prove:requests -- [--requests 500] [--seconds 60] [--seed N]
         [--subscription all|category] [--checkpoints redis|eventstore] [--failovers] [--forget]

A seed draws the same requests and blows again; when exactly they fall is up to the machine.
--failovers has Redis come back without its last writes, too; what it forgot is dispatched again.
--forget deletes the markers in the middle and has all read again, and the run must fail: the checker sees it.`;

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "500" },
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    subscription: { type: "string", default: "all" },
    checkpoints: { type: "string", default: "redis" },
    failovers: { type: "boolean", default: false },
    forget: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const [requests, seconds, seed] = [Number(values.requests), Number(values.seconds), Number(values.seed)];
const subscription = (["all", "category"] as const).find((it) => it === values.subscription);
const checkpoints = (["redis", "eventstore"] as const).find((it) => it === values.checkpoints);
if (values.help || !subscription || !checkpoints || !(requests > 0 && seconds > 0 && Number.isInteger(seed))) {
  console.error(USAGE);
  process.exit(2);
}

const again = [
  `--requests ${requests} --seconds ${seconds} --seed ${seed} --subscription ${subscription} --checkpoints ${checkpoints}`,
  ...(values.failovers ? ["--failovers"] : []),
  ...(values.forget ? ["--forget"] : []),
].join(" ");
console.log(`again with: npm run prove:requests -- ${again}`);
const startedMs = performance.now();
const log = (line: string) =>
  console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(5)} s  ${line}`);

const report = await proveRequests({
  subscription,
  checkpoints,
  requests,
  seconds,
  seed,
  failovers: values.failovers,
  forgets: values.forget,
  log,
});
console.log(`\n${describeReport(report)}`);
if (report.verdict.violations.length > 0) {
  console.error(`\nFAILED; again with: npm run prove:requests -- ${again}`);
  process.exitCode = 1;
}
