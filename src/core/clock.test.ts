import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock, systemRandom } from "./clock.ts";

test("a sleep ends with its signal, also with one that has aborted already", async () => {
  const startedMs = systemClock.monotonicMs();
  const abort = new AbortController();
  const sleeping = systemClock.sleep(600_000, abort.signal);
  abort.abort();
  await sleeping;
  await systemClock.sleep(600_000, abort.signal);
  assert.ok(systemClock.monotonicMs() - startedMs < 60_000);
});

test("a sleep lasts as long as asked, by the monotonic clock", async () => {
  const startedMs = systemClock.monotonicMs();
  await systemClock.sleep(10);
  assert.ok(systemClock.monotonicMs() - startedMs >= 9);
  await systemClock.sleep(-5);
});

test("chance is drawn from [0, 1) and ids are UUIDs", () => {
  for (let round = 0; round < 1_000; round++) {
    const drawn = systemRandom.next();
    assert.ok(drawn >= 0 && drawn < 1);
  }
  assert.match(systemRandom.uuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.ok(Math.abs(systemClock.wallMs() - Date.now()) < 1_000);
});

test("a sleep is never shorter than asked for, by the clock that asked", async () => {
  for (const ms of [0.2, 1.4, 2.6, 5.5, 7.9]) {
    const startedMs = systemClock.monotonicMs();
    await systemClock.sleep(ms);
    const sleptMs = systemClock.monotonicMs() - startedMs;
    assert.ok(sleptMs >= ms, `slept ${sleptMs} ms instead of ${ms}`);
  }
});
