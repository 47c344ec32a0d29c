import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RateLimit } from "./rate-limit.ts";

test("F4 no window of time lets more through than the rate and one burst", () => {
  const steps = fc.array(fc.record({ afterMs: fc.nat(500), wanted: fc.nat(300) }), { maxLength: 200 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), steps, (perSecond, asked) => {
      const limit = new RateLimit(perSecond);
      let nowMs = 0;
      let sum = 0;
      for (const { afterMs, wanted } of asked) {
        nowMs += afterMs;
        const granted = limit.take(wanted, nowMs);
        assert.ok(granted >= 0 && granted <= wanted);
        sum += granted;
        assert.ok(sum <= Math.max(1, perSecond * 0.1) + (nowMs * perSecond) / 1_000 + 1e-6);
      }
    }),
  );
});

test("F4 a caller that waits for `waitMs` gets a token, and the rate is reached", () => {
  const limit = new RateLimit(1_000);
  let nowMs = 0;
  let sum = 0;
  while (nowMs < 10_000) {
    const granted = limit.take(10_000, nowMs);
    if (sum > 0) assert.ok(granted > 0);
    sum += granted;
    nowMs += limit.waitMs();
  }
  assert.ok(sum > 9_900 && sum <= 10_100, String(sum));
});

test("F4 tokens that were granted and not used can be taken again", () => {
  const limit = new RateLimit(100);
  assert.equal(limit.take(50, 0), 10);
  assert.equal(limit.take(1, 0), 0);
  limit.giveBack(4);
  assert.equal(limit.take(50, 0), 4);
});
