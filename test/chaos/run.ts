// The kill harness for people: node test/chaos/run.ts --seconds 60 [--seed N] [--postgres 15|18]
// Ends with 0 when nothing was lost, no key was out of order and nothing was repeated beyond what was in flight.
import { parseArgs } from "node:util";
import { describeVerdict } from "../e2e/checker.ts";
import { runRounds } from "./relay-rounds.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    postgres: { type: "string", default: "18" },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
const version = values.postgres === "15" ? 15 : values.postgres === "18" ? 18 : undefined;
if (version === undefined || !(seconds > 0) || !Number.isInteger(seed)) {
  console.error("usage: node test/chaos/run.ts --seconds 60 [--seed N] [--postgres 15|18]");
  process.exit(2);
}

console.log(`again with: node test/chaos/run.ts --seconds ${seconds} --seed ${seed} --postgres ${version}`);
const startedMs = performance.now();
const log = (line: string) =>
  console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(6)} s  ${line}`);
const report = await runRounds({ seconds, seed, version, blows: ["kill", "pause", "terminate"], log });
const { verdict, blows, duplicatesMax } = report;
console.log(describeVerdict(verdict));
console.log(
  `${blows.kill} kills, ${blows.pause} pauses, ${blows.terminate} stops, ${report.lostAnswers} lost answers; at most ${duplicatesMax} duplicates`,
);
console.log(`${report.takeOvers} lanes taken, ${report.lostByThemselves} leases lost by themselves`);

const { lost, unknown, inversions, corrupt, unmarked, markedInVain, duplicates } = verdict;
const wrong = [lost, unknown, inversions, corrupt, unmarked, markedInVain].some((list) => list.length > 0);
if (wrong || duplicates > duplicatesMax) {
  console.error("FAILED");
  process.exitCode = 1;
}
