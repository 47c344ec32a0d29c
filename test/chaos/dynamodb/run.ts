// The proof of intents in DynamoDB for people: npm run prove:dynamodb -- --intents 10000 --kills 10
// Ends with 0 when every intent arrived with its key or is a dead letter that had to become one.
import { parseArgs } from "node:util";
import { describeVerdict, faultsOf, proveIntents } from "./intent-proof.ts";

const USAGE = `usage: npm run prove:dynamodb -- [--intents 10000] [--kills 10] [--runner-kills 5] [--runners 2] [--seed N]

Intents of two types go through the Lambda handlers and local runners to an HTTP receiver, while DynamoDB Local and the
runners are killed with -9 at random and start again. A seed draws the same blows again; when exactly they fall is up to
the machine.`;

const { values } = parseArgs({
  options: {
    intents: { type: "string", default: "10000" },
    kills: { type: "string", default: "10" },
    "runner-kills": { type: "string", default: "5" },
    runners: { type: "string", default: "2" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    help: { type: "boolean", default: false },
  },
});
const [intents, kills, runnerKills, runners, seed] = [
  ...[values.intents, values.kills, values["runner-kills"], values.runners, values.seed],
].map(Number) as [number, number, number, number, number];
const areRight = [intents, kills, runnerKills, runners, seed].every((value) => Number.isInteger(value) && value >= 0);
if (values.help || !areRight || intents === 0 || runners === 0) {
  console.error(USAGE);
  process.exit(2);
}

const again = `--intents ${intents} --kills ${kills} --runner-kills ${runnerKills} --runners ${runners} --seed ${seed}`;
console.log(`again with: npm run prove:dynamodb -- ${again}`);
const startedMs = performance.now();
const log = (line: string) =>
  console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(6)} s  ${line}`);
const verdict = await proveIntents({ intents, kills, runnerKills, runners, seed, drainMs: 180_000, log });
console.log(describeVerdict(verdict));
const faults = Object.entries(faultsOf(verdict)).filter(([, list]) => list.length > 0);
for (const [what, list] of faults) console.error(`${what}: ${list.slice(0, 20).join(", ")}`);
const { dead, deadExpected, duplicates, duplicatesMax } = verdict;
if (faults.length > 0 || dead.length !== deadExpected || duplicates > duplicatesMax) {
  console.error("FAILED");
  process.exitCode = 1;
}
