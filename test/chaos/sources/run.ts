// The proof for every kind of source, for people: npm run prove:sources -- --kills 20
// Ends with 0 when nothing was lost, nothing came out of order, and only what a kill explains came twice.
import { parseArgs } from "node:util";
import { describeKills, isProved, proveKills } from "./kill-proof.ts";
import { SOURCE_KINDS } from "./source-kinds.ts";

const USAGE = `usage: npm run prove:sources -- [--kills 20] [--source ${SOURCE_KINDS.join("|")}|all] [--relays 3] [--seed N]

Events are written, the shipped command delivers them to a webhook, and its processes are killed with -9 at random
moments, half of the time while the webhook answers nothing. Then it is counted what arrived, in which order, how often.
A seed draws the same blows again; when exactly they fall is up to the machine.`;

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "20" },
    source: { type: "string", default: "all" },
    relays: { type: "string", default: "3" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    help: { type: "boolean", default: false },
  },
});
const [kills, relays, seed] = [Number(values.kills), Number(values.relays), Number(values.seed)];
const sources = SOURCE_KINDS.filter((kind) => values.source === "all" || values.source === kind);
if (values.help || sources.length === 0 || !(kills > 0 && relays > 0 && Number.isInteger(seed))) {
  console.error(USAGE);
  process.exit(2);
}

const again = `npm run prove:sources -- --kills ${kills} --source ${values.source} --relays ${relays} --seed ${seed}`;
console.log(`again with: ${again}`);
let isAllProved = true;
for (const source of sources) {
  const startedMs = performance.now();
  const log = (line: string) =>
    console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(6)} s  ${source.padEnd(11)}  ${line}`);
  const report = await proveKills({ source, kills, relays, seed, log });
  log(describeKills(report));
  isAllProved &&= isProved(report);
}
if (!isAllProved) {
  console.error(`FAILED; again with: ${again}`);
  process.exitCode = 1;
}
