import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import corpus from "./corpus.json" with { type: "json" };
import { applyMutant } from "./mutant.ts";
import { MUTANTS } from "./mutants.ts";
import { runSeed } from "./run-seed.ts";
import { SeededRandom } from "./seeded-random.ts";
import { SimProcess } from "./sim-process.ts";
import { VirtualTime } from "./virtual-clock.ts";
import { runSeeds, type SeedReport } from "./worker-pool.ts";

const FRESH_FROM = 1_000_000;
/** Fewer seeds in the fast run. */
const FRESH_SEEDS = process.env.TEST_TIER === "fast" ? 60 : 100;

function describeFailures(failures: readonly SeedReport[]): string {
  return failures.map(({ seed, violations }) => `npm run simulate -- --seed ${seed}  # ${violations[0]}`).join("\n");
}

async function checkSeeds(seeds: readonly number[]): Promise<void> {
  const failures = await runSeeds({ seeds, jobs: 2 });
  assert.equal(failures.length, 0, `\n${describeFailures(failures)}`);
}

describe("F7 the simulator", () => {
  it("F7 a seed gives the same history every time", async () => {
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      const first = await runSeed(seed);
      const second = await runSeed(seed);
      assert.equal(second.hash, first.hash, `seed ${seed}`);
      assert.equal(second.steps, first.steps, `seed ${seed}`);
    }
  });

  it("F7 seeds that failed before pass", () =>
    checkSeeds([...corpus.seeds, ...corpus.plain, ...corpus.later, ...corpus.newest]));

  it("F7 fresh seeds pass", () => checkSeeds(Array.from({ length: FRESH_SEEDS }, (_, index) => FRESH_FROM + index)));

  it("A4 F7 events written while a destination is down for an hour are delivered afterwards, and no attempt is counted", async () => {
    for (const seed of [3_000, 9_000]) {
      const { fired, violations } = await runSeed(seed);
      assert.deepEqual([fired["hour-long outage"], violations], [1, []], `seed ${seed}`);
    }
  });

  it("F7 every planted bug still matches the code", () => {
    assert.ok(MUTANTS.length >= 20);
    assert.equal(new Set(MUTANTS.map(({ name }) => name)).size, MUTANTS.length);
    for (const mutant of MUTANTS) {
      const source = readFileSync(new URL(`../../${mutant.file}`, import.meta.url), "utf8");
      assert.notEqual(applyMutant(mutant, source), source, mutant.name);
    }
  });

  it("F7 the command runs seeds, and tells how many failed", async () => {
    const command = join(import.meta.dirname, "simulate.ts");
    const { stdout } = await promisify(execFile)(process.execPath, [command, "--seeds", "3", "--jobs", "1"]);
    assert.match(stdout, /^3 seeds, \d+ events, \d+ seeds\/s: 0 failed$/m);
  });

  it("F7 a planted bug is detected", async () => {
    const seeds = Array.from({ length: 40 }, (_, index) => index + 1);
    const mutant = "in-flight set not consulted";
    const failures = await runSeeds({ seeds, jobs: 1, mutant, stopAtFailure: true });
    assert.match(failures[0]?.violations[0] ?? "", /^[DX]: /, describeFailures(failures));
  });
});

describe("F7 virtual time", () => {
  function setUp() {
    const time = new VirtualTime(new SeededRandom(1));
    const process = new SimProcess("p", time, new SeededRandom(2), () => {});
    const log: string[] = [];
    const wake = (name: string, ms: number) => {
      void process.clock.sleep(ms).then(() => log.push(`${name} at ${time.nowMs}`));
    };
    return { time, process, log, wake };
  }

  it("F7 runs all microtasks of an event before the next event", async () => {
    const { time, log } = setUp();
    time.after(1, async () => {
      for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
      log.push("first");
    });
    time.after(1.5, () => log.push("second"));
    await time.runUntil(10);
    assert.deepEqual(log, ["first", "second"]);
    assert.equal(time.nowMs, 10);
  });

  it("F7 a paused process gets its timers late, a crashed one never", async () => {
    const { time, process, log, wake } = setUp();
    wake("a", 5);
    wake("b", 200);
    process.pause({ forMs: 100, suspended: false });
    await time.runUntil(150);
    assert.deepEqual(log, ["a at 100"]);
    process.crash();
    await time.runUntil(1_000);
    assert.deepEqual(log, ["a at 100"]);
  });

  it("F7 on a suspended machine the monotonic clock stops, the wall clock continues", async () => {
    const { time, process, log, wake } = setUp();
    const driftMs = process.clock.wallMs() - process.clock.monotonicMs();
    wake("a", 50);
    process.pause({ forMs: 100, suspended: true });
    await time.runUntil(1_000);
    assert.deepEqual(log, ["a at 150"]);
    assert.equal(process.clock.monotonicMs(), 900);
    assert.equal(process.clock.wallMs() - process.clock.monotonicMs(), driftMs + 100);
  });

  it("F7 an abort ends a sleep at once", async () => {
    const { time, process, log } = setUp();
    const controller = new AbortController();
    void process.clock.sleep(1_000, controller.signal).then(() => log.push(`over at ${time.nowMs}`));
    time.after(3, () => controller.abort());
    await time.runUntil(10);
    assert.deepEqual(log, ["over at 3"]);
  });
});
