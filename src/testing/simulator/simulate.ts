import { parseArgs } from "node:util";
import { INVARIANTS } from "./checks.ts";
import { FAULT_KINDS, type FaultKind } from "./faults.ts";
import { runMutants } from "./mutant-runner.ts";
import { runSeed } from "./run-seed.ts";
import { scenarioOf } from "./scenario.ts";
import { runSeeds, type SeedReport } from "./worker-pool.ts";

const USAGE = `npm run simulate -- [options]

  --seeds N    how many seeds to run (1000); with --mutants: at most so many for each (20000)
  --from K     the first seed (1)
  --jobs J     processes (2)
  --seed K     runs one seed and prints all that happened
  --mutants    plants bugs into the engine, one at a time, and looks whether a seed notices
  --only TEXT  only the mutants whose name contains it
`;

/** With at least this many seeds each kind of fault must have fired, or the run proves less than it claims. */
const SEEDS_FOR_EVERY_KIND = 1_000;
const FAILURES_SHOWN_MAX = 20;
const SEEDS = 1_000;
/** Seeds tried per mutant. Which seed detects a bug changes with the engine; some bugs take thousands. */
const SEEDS_PER_MUTANT = 20_000;

const WIDTH = 30;
const DRAW_EVERY_MS = 100;

/** A progress bar on a terminal; no output elsewhere. */
class Progress {
  readonly #total: number;
  readonly #startedMs = performance.now();
  readonly #stream = process.stderr;
  #done = 0;
  #drawnMs = 0;

  constructor(total: number) {
    this.#total = total;
  }

  get perSecond(): number {
    return this.#done / Math.max(0.001, (performance.now() - this.#startedMs) / 1_000);
  }

  advance(failed: number): void {
    this.#done += 1;
    const nowMs = performance.now();
    if (!this.#stream.isTTY || (nowMs - this.#drawnMs < DRAW_EVERY_MS && this.#done < this.#total)) return;
    this.#drawnMs = nowMs;
    const filled = Math.floor((this.#done / this.#total) * WIDTH);
    const bar = "█".repeat(filled) + "░".repeat(WIDTH - filled);
    const text = `${bar} ${this.#done}/${this.#total} seeds, ${this.perSecond.toFixed(0)}/s, ${failed} failed`;
    this.#stream.write(`\r${text}\u001b[K`);
  }

  end(): void {
    if (this.#stream.isTTY) this.#stream.write("\r\u001b[K");
  }
}

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    from: { type: "string", default: "1" },
    jobs: { type: "string", default: "2" },
    seed: { type: "string" },
    mutants: { type: "boolean", default: false },
    only: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

function count(name: "seeds" | "from" | "jobs" | "seed"): number {
  const value = Number(values[name] ?? (values.mutants ? SEEDS_PER_MUTANT : SEEDS));
  if (Number.isSafeInteger(value) && value >= 0) return value;
  console.error(`--${name} is "${values[name]}"; it must be a whole number.\n\n${USAGE}`);
  process.exit(2);
}

async function replay(seed: number): Promise<boolean> {
  const result = await runSeed(seed, true);
  const { writes, ...scenario } = scenarioOf(seed);
  console.log(JSON.stringify({ ...scenario, writes: writes.length }, null, 2));
  for (const line of result.lines) console.log(line);
  console.log(`\nseed ${seed}: ${result.events} events, ${result.steps} steps, trace ${result.hash}`);
  printFailure(result);
  return result.violations.length === 0;
}

async function simulate(): Promise<boolean> {
  const [seeds, from, jobs] = [count("seeds"), count("from"), count("jobs")];
  const progress = new Progress(seeds);
  const fired = new Map<FaultKind, number>();
  let events = 0;
  let failed = 0;
  const onResult = (result: SeedReport): void => {
    for (const [kind, times] of Object.entries(result.fired) as [FaultKind, number][]) {
      fired.set(kind, (fired.get(kind) ?? 0) + times);
    }
    events += result.events;
    if (result.violations.length > 0) failed += 1;
    progress.advance(failed);
  };
  const failures = await runSeeds({ seeds: range(from, seeds), jobs, onResult });
  progress.end();
  const silent = printFaults(fired);
  for (const failure of failures.slice(0, FAILURES_SHOWN_MAX)) printFailure(failure);
  if (failures.length > FAILURES_SHOWN_MAX) console.log(`... and ${failures.length - FAILURES_SHOWN_MAX} more`);
  console.log(`${seeds} seeds, ${events} events, ${progress.perSecond.toFixed(0)} seeds/s: ${failures.length} failed`);
  const isBlind = seeds >= SEEDS_FOR_EVERY_KIND && silent.length > 0;
  if (isBlind) console.log(`These faults never fired, so the run proves nothing about them: ${silent.join(", ")}`);
  return failures.length === 0 && !isBlind;
}

async function hunt(): Promise<boolean> {
  const options = { from: count("from"), seeds: count("seeds"), jobs: count("jobs"), only: values.only ?? "" };
  const results = await runMutants({
    ...options,
    onResult: ({ mutant, caughtBy, seeds }) => {
      const what = caughtBy === null ? `SURVIVED ${seeds} seeds` : `seed ${caughtBy.seed}: ${caughtBy.violations[0]}`;
      console.log(`${mutant.name.padEnd(48)} ${what.split("\n")[0]?.slice(0, 110)}`);
    },
  });
  const survivors = results.filter(({ caughtBy }) => caughtBy === null);
  console.log(`${results.length - survivors.length} of ${results.length} planted bugs were detected`);
  for (const { mutant } of survivors) console.log(`survived: ${mutant.name} (src/${mutant.file}): ${mutant.why}`);
  return survivors.length === 0;
}

function printFailure({ seed, violations }: Pick<SeedReport, "seed" | "violations">): void {
  for (const violation of violations.slice(0, 3)) {
    const [invariant = ""] = violation.split(":");
    console.log(`seed ${seed} violated ${violation}`);
    console.log(`  ${invariant}: ${INVARIANTS[invariant] ?? "see the trace"}`);
  }
  if (violations.length > 0) console.log(`  npm run simulate -- --seed ${seed}`);
}

/** Prints how often each fault fired. Returns the kinds that never fired. */
function printFaults(fired: ReadonlyMap<FaultKind, number>): FaultKind[] {
  const cells = FAULT_KINDS.map((kind) => `${kind.padEnd(24)}${String(fired.get(kind) ?? 0).padStart(9)}`);
  const rows = Math.ceil(cells.length / 3);
  for (let row = 0; row < rows; row += 1) {
    console.log([0, 1, 2].map((column) => cells[row + column * rows] ?? "").join("    "));
  }
  console.log("");
  return FAULT_KINDS.filter((kind) => !fired.has(kind));
}

function range(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => from + index);
}

if (values.help) console.log(USAGE);
else {
  const run = values.seed !== undefined ? () => replay(count("seed")) : values.mutants ? hunt : simulate;
  process.exitCode = (await run()) ? 0 : 1;
}
