import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  delayAfter,
  exponentialRetry,
  longestDelayMs,
  RETRY_PRESETS,
  type RetryPolicy,
  scheduledRetry,
} from "./retry-policy.ts";

/** The delays in seconds after each failure until none follows, with the middle of the jitter. */
function secondsOf(policy: RetryPolicy): number[] {
  const seconds: number[] = [];
  for (let failures = 1; failures <= 1_000; failures++) {
    const delayMs = delayAfter(policy, failures, 0.5);
    if (delayMs === "exhausted") return seconds;
    seconds.push(delayMs / 1_000);
  }
  return assert.fail("it never ends");
}

test("C2 backoff 30, 60, 120, 240, 480 s, the sixth failure is poison", () => {
  assert.deepEqual(secondsOf(RETRY_PRESETS.worker), [30, 60, 120, 240, 480]);
  assert.equal(delayAfter(RETRY_PRESETS.worker, 6, 0.5), "exhausted");
});

test("C2 the worker's backoff is capped at 3600 s when more attempts are allowed", () => {
  const longer = exponentialRetry({ initialMs: 30_000, maxMs: 3_600_000, attemptsMax: 10 });
  assert.deepEqual(secondsOf(longer), [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
});

test("A8 backoff starts at 1 s and doubles up to 5 min", () => {
  assert.deepEqual(secondsOf(exponentialRetry({ attemptsMax: 12 })), [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
});

test("A9 the tenth failure is the last", () => {
  assert.equal(secondsOf(RETRY_PRESETS.flag).length, 9);
  assert.equal(delayAfter(RETRY_PRESETS.flag, 9, 0.5), 256_000);
  assert.equal(delayAfter(RETRY_PRESETS.flag, 10, 0.5), "exhausted");
});

test("D5 a listed schedule is followed to its end, and the next failure is a dead letter", () => {
  assert.deepEqual(secondsOf(RETRY_PRESETS.intent), [30, 300, 1_800]);
  assert.deepEqual(secondsOf(scheduledRetry([0, 30_000])), [0, 30]);
  assert.deepEqual(secondsOf(scheduledRetry([])), []);
});

test("B3 an Open Outbox event is dead after 25 failures", () => {
  assert.equal(secondsOf(RETRY_PRESETS.openoutbox).length, 24);
});

test("B5 jitter is added to a delay and never subtracted, by no more than its share", () => {
  const options = {
    initialMs: fc.integer({ min: 1, max: 100_000 }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  };
  const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.record(options), fc.integer({ min: 1, max: 9 }), draw, ({ initialMs, jitter }, failures, drawn) => {
      const policy = exponentialRetry({ initialMs, jitter, maxMs: 10_000_000 });
      const plainMs = delayAfter(exponentialRetry({ initialMs, maxMs: 10_000_000 }), failures, 0);
      const delayMs = delayAfter(policy, failures, drawn);
      assert.ok(plainMs !== "exhausted" && delayMs !== "exhausted");
      assert.ok(delayMs >= plainMs && delayMs <= Math.ceil(plainMs * (1 + jitter)));
    }),
  );
});

test("delays never shrink from one failure to the next", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 1, max: 10 }), (initialMs, factor) => {
      const seconds = secondsOf(exponentialRetry({ initialMs, factor, maxMs: 1_000_000, attemptsMax: 50 }));
      assert.ok(seconds.every((delay, index) => index === 0 || delay >= seconds[index - 1]!));
      assert.ok(seconds.every(Number.isFinite));
    }),
  );
});

test("block waits for the longest delay, never less than a second", () => {
  assert.equal(longestDelayMs(exponentialRetry({ maxMs: 5_000 })), 5_000);
  assert.equal(longestDelayMs(scheduledRetry([30_000, 10])), 30_000);
  assert.equal(longestDelayMs(scheduledRetry([0])), 1_000);
});

test("a setting out of range is refused by its name", () => {
  assert.throws(() => exponentialRetry({ jitter: 1.5 }), /retry\.jitter is 1\.5/);
  assert.throws(() => exponentialRetry({ attemptsMax: 0 }), /retry\.attemptsMax/);
  assert.throws(() => exponentialRetry({ initialMs: 10, maxMs: 5 }), /retry\.maxMs/);
  assert.throws(() => exponentialRetry({ factor: Number.NaN }), /retry\.factor/);
  assert.throws(() => scheduledRetry([1, -1]), /retry\.delaysMs is -1/);
});
