import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LATENCY_BOUNDS_MS, LatencyCounter } from "./latency.ts";

const NOW = Date.parse("2026-03-04T05:06:07.890Z");

function sumOf(createdAt: string, nowMs = NOW): number | undefined {
  return new LatencyCounter().count(["id"], () => createdAt, nowMs)?.sumMs;
}

test("A11 a latency is counted once, at the first bound that is not below it", () => {
  const times = [0, 5, 6, 3_600_000, 3_600_001].map((ageMs) => new Date(NOW - ageMs).toISOString());
  const found = new LatencyCounter().count(times, (time) => time, NOW);
  const counts = new Array(LATENCY_BOUNDS_MS.length + 1).fill(0);
  counts[0] = 2;
  counts[1] = 1;
  counts[LATENCY_BOUNDS_MS.length - 1] = 1;
  counts[LATENCY_BOUNDS_MS.length] = 1;
  assert.deepEqual(found, { counts, sumMs: 7_200_012 });
});

test("A11 every time format of a source is understood, and a text that is not a time is not counted", () => {
  assert.equal(sumOf("2026-03-04T05:06:07.89Z"), 0);
  assert.equal(sumOf("2026-03-04T05:06:07.889999Z"), 1);
  assert.equal(sumOf("2026-03-04T05:06:07Z"), 890);
  assert.equal(sumOf("2026-03-04T06:06:07.890+01:00"), 0);
  assert.equal(sumOf("2027-03-04T05:06:07Z"), 0, "a writer's clock ahead of ours makes no latency negative");
  assert.equal(sumOf("yesterday"), undefined);
  assert.equal(
    new LatencyCounter().count(["gone"], () => undefined, NOW),
    null,
  );
});

test("A11 days that alternate are distinguished", () => {
  const date = fc.date({ min: new Date(0), max: new Date(NOW), noInvalidDate: true });
  fc.assert(
    fc.property(fc.array(date, { minLength: 1, maxLength: 25 }), (dates) => {
      const times = dates.map((it) => it.toISOString());
      const found = new LatencyCounter().count(times, (time) => time, NOW);
      assert.equal(
        found?.sumMs,
        dates.reduce((sum, it) => sum + NOW - it.getTime(), 0),
      );
    }),
  );
});

test("A11 of a large batch samples stand for all: the count is exact, and the latencies are close", () => {
  const ages = Array.from({ length: 4_990 }, (_, n) => n);
  const found = new LatencyCounter().count(
    ages.map((ageMs) => new Date(NOW - ageMs).toISOString()),
    (time) => time,
    NOW,
  );
  const sum = ages.reduce((total, ageMs) => total + ageMs, 0);
  assert.equal(
    found?.counts.reduce((total, count) => total + count, 0),
    ages.length,
  );
  assert.ok(Math.abs((found?.sumMs ?? 0) / sum - 1) < 0.05, `${found?.sumMs} of ${sum}`);
});
