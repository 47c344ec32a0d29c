import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff, backoffMs } from "./backoff.ts";

test("A8 pauses double from the first to the longest, and a success resets them", () => {
  const backoff = new Backoff({ firstMs: 100, lastMs: 500 });
  const pauses = () => Array.from({ length: 5 }, () => backoff.nextMs());
  assert.deepEqual(pauses(), [100, 200, 400, 500, 500]);
  backoff.reset();
  assert.deepEqual(pauses().slice(0, 2), [100, 200]);
});

test("A8 after a million failures the pause is still the longest, and still zero where the first is zero", () => {
  assert.equal(backoffMs({ firstMs: 1, lastMs: 300_000 }, 1_000_000), 300_000);
  assert.equal(backoffMs({ firstMs: 0, lastMs: 300_000 }, 1_000_000), 0);
});
