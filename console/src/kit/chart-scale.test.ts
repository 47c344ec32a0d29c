import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { areaPath, linePath, roundTicks, timeTicks } from "./chart-scale.ts";

test("G4 an axis has a few round values and ends above the highest", () => {
  assert.deepEqual(roundTicks(0), [0, 0.25, 0.5, 0.75, 1]);
  assert.deepEqual(roundTicks(537), [0, 200, 400, 600]);
  assert.deepEqual(roundTicks(0.3), [0, 0.1, 0.2, 0.3]);
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (most) => {
      const ticks = roundTicks(most);
      assert.ok(ticks.length >= 2 && ticks.length <= 6, `${ticks}`);
      assert.ok((ticks.at(-1) ?? 0) >= most * 0.999_99, `${ticks} for ${most}`);
    }),
  );
});

test("G4 times on the axis are round and few", () => {
  const from = Date.parse("2026-01-01T10:03:20Z");
  const shown = timeTicks(from, from + 1_800_000, 4).map((at) => new Date(at).toISOString().slice(11, 16));
  assert.deepEqual(shown, ["10:10", "10:20", "10:30"]);
});

test("G4 a line has a gap where the value is unknown", () => {
  const points = [
    [0, 1],
    [1, 2],
    [2, null],
    [3, 4],
    [4, 5],
  ] as const;
  assert.equal(linePath(points), "M0.0 1.0L1.0 2.0M3.0 4.0L4.0 5.0");
  assert.equal(areaPath(points, 9), "M0.0 1.0L1.0 2.0L1.0 9L0.0 9ZM3.0 4.0L4.0 5.0L4.0 9L3.0 9Z");
});
