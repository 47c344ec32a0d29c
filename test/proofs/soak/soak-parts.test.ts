import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeMemory, type MemorySample, tenthsOf } from "./memory-curve.ts";
import { Sequences } from "./sequences.ts";

const curve = (mbAt: (second: number) => number): MemorySample[] =>
  Array.from({ length: 1_000 }, (_, second) => ({ atSeconds: second, progress: second / 1_000, mb: mbAt(second) }));

test("H1: a curve that climbs at the start and then breathes is flat; one that goes on climbing is not", () => {
  const breath = (second: number) => (second % 7) * 5;
  assert.equal(judgeMemory(curve((second) => Math.min(150, 50 + second) + breath(second))).isFlat, true);
  const leak = judgeMemory(curve((second) => 100 + second / 10 + breath(second)));
  assert.equal(leak.isFlat, false);
  assert.ok(Math.abs(leak.growthMb - 50) < 2, `${leak.growthMb}`);
});

test("H1: each tenth of the work has its least, middle and greatest memory", () => {
  const tenths = tenthsOf(curve((second) => second));
  assert.deepEqual(tenths[3], { min: 300, median: 350, max: 399, samples: 100 });
  assert.equal(tenthsOf([])[0], null);
});

test("H1: what is lost, doubled or late is counted by the numbers of each key alone", () => {
  const seen = new Sequences();
  for (const number of [1, 2, 2, 5, 4]) seen.see("a", number);
  seen.see("b", 1);
  assert.deepEqual([seen.count, seen.duplicates, seen.outOfOrder], [6, 1, 1]);
  assert.equal(seen.lost(["a", "b", "c"], 6), 2 + 5 + 6);
});
