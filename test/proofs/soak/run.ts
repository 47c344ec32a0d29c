// The soak: npm run prove:soak -- --events 10000000
// Ends with 0 when all events were read once, in order, and the memory of the relay stayed flat.
import { parseArgs } from "node:util";
import { conclude, refuse, startLog } from "../progress.ts";
import { judgeMemory, tenthsOf } from "./memory-curve.ts";
import { type SoakReport, soak } from "./soak.ts";

const USAGE = `usage: npm run prove:soak -- [--events 10000000] [--source managed|flag] [--outage SECONDS] [--rate 200]

One relay carries so many events of about 200 bytes from PostgreSQL to Kafka, exactly once, while they are written; a
reader counts what arrives, and the memory of the relay is measured every second.
--outage stops Kafka for so many seconds in the middle, while --rate events a second are written. There is nothing to draw, so no seed.`;

/** The promise of the README. */
const MEMORY_MB_MAX = 256;

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "10000000" },
    source: { type: "string", default: "managed" },
    outage: { type: "string", default: "0" },
    rate: { type: "string", default: "200" },
    help: { type: "boolean", default: false },
  },
});
const [events, outageSeconds, outageRate] = [Number(values.events), Number(values.outage), Number(values.rate)];
const source = (["managed", "flag"] as const).find((it) => it === values.source);
if (values.help || !(events >= 1_000) || !(outageSeconds >= 0) || !(outageRate > 0) || source === undefined)
  refuse(USAGE);

const again = [
  `npm run prove:soak -- --events ${events} --source ${source}`,
  ...(outageSeconds > 0 ? [`--outage ${outageSeconds} --rate ${outageRate}`] : []),
].join(" ");
const log = startLog();
log(`again with: ${again}`);
const report = await soak({ events, source, outageSeconds, outageRate, log });
conclude(describe(report), again);

function describe({ samples, outage, ...counts }: SoakReport): boolean {
  const verdict = judgeMemory(samples);
  console.log("\n| work done | RSS min | median | max | samples |\n|---|---|---|---|---|");
  for (const [at, tenth] of tenthsOf(samples).entries()) {
    const cells =
      tenth === null ? ["-", "-", "-", 0] : [...[tenth.min, tenth.median, tenth.max].map(mb), tenth.samples];
    console.log(`| ${at * 10}-${at * 10 + 10} % | ${cells.join(" | ")} |`);
  }
  const growth = `the second half grows by ${mb(verdict.growthMb)}, at most ${mb(verdict.growthMbMax)} are allowed`;
  console.log(
    `\nmemory: ${verdict.isFlat ? "flat" : "NOT FLAT"}, ${growth}; at most ${mb(verdict.maxMb)} of ${mb(MEMORY_MB_MAX)}`,
  );
  const { written, read, lost, duplicates, outOfOrder, holds, seconds } = counts;
  const rate = Math.round(read / seconds).toLocaleString("en");
  console.log(`${written} written, ${read} read in ${seconds.toFixed(0)} s (${rate} a second)`);
  console.log(`${lost} lost, ${duplicates} duplicates, ${outOfOrder} out of order, ${holds} failing or dead`);
  if (outage !== null) {
    console.log(`outage: ${outage.backlog} events waited, read ${outage.drainSeconds.toFixed(0)} s after the return`);
    console.log(`health at the end of the outage: ${outage.health}`);
  }
  const isHonest = outage === null || !outage.health.startsWith("healthy");
  return verdict.isFlat && verdict.maxMb <= MEMORY_MB_MAX && isHonest && lost + duplicates + outOfOrder + holds === 0;
}

function mb(value: number): string {
  return `${value.toFixed(0)} MB`;
}
