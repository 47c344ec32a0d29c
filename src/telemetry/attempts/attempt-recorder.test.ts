import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../../core/clock.ts";
import type { RecordedAttempt } from "../../ports/attempt-recorder.ts";
import { type AttemptStore, BudgetedRecorder } from "./attempt-recorder.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Sleeps end on demand. */
function stillClock() {
  const sleeps: { readonly ms: number; readonly wake: () => void }[] = [];
  const clock: Clock = {
    wallMs: () => 0,
    monotonicMs: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        sleeps.push({ ms, wake: resolve });
        signal?.addEventListener("abort", () => resolve(), { once: true });
      }),
  };
  const pass = async () => {
    for (const { wake } of sleeps.splice(0)) wake();
    await turn();
  };
  return { clock, sleeps, pass };
}

function attempt(eventId: string): RecordedAttempt {
  return {
    atMs: 1,
    pipeline: "p",
    eventId,
    eventType: "t",
    eventKey: null,
    correlationId: null,
    outcome: "failed",
    attempt: 1,
    reason: "no",
    errorType: "X",
    target: "topic",
    writtenAt: null,
    claimedAtMs: null,
    sentAtMs: null,
    durationMs: null,
    headers: null,
  };
}

function stage(deliveredPerSecond: number, retentionMs = 600_000) {
  const { clock, pass, sleeps } = stillClock();
  const stored: string[] = [];
  const prunes: number[] = [];
  let old = 0;
  let isDown = false;
  const requireUp = () => {
    if (isDown) throw new Error("down");
  };
  const store: AttemptStore = {
    async append(attempts) {
      requireUp();
      stored.push(...attempts.map(({ eventId }) => eventId));
    },
    async prune(olderThanMs, rows) {
      requireUp();
      const count = Math.min(rows, old);
      old -= count;
      prunes.push(olderThanMs);
      return count;
    },
    async close() {},
  };
  const recorder = new BudgetedRecorder({ store, clock, deliveredPerSecond, retentionMs });
  const change = (to: { old?: number; isDown?: boolean }) => {
    old = to.old ?? old;
    isDown = to.isDown ?? isDown;
  };
  return { recorder, stored, prunes, change, pass, sleeps };
}

const taken = (recorder: BudgetedRecorder, asked: number, nowMs: number) =>
  Array.from({ length: asked }).filter(() => recorder.takesDelivered(nowMs)).length;

test("F3 the first delivered events of each second are recorded, within one budget", () => {
  const { recorder } = stage(50);
  assert.equal(taken(recorder, 30, 5_000), 30);
  assert.equal(taken(recorder, 1_000, 5_500), 20);
  assert.equal(taken(recorder, 1_000, 5_999), 0);
  assert.equal(taken(recorder, 1_000, 6_000), 50);
  assert.equal(taken(recorder, 1_000, 5_900), 0, "a publish that began earlier and ends later opens no new second");
});

test("F3 all or none are recorded, if so configured", () => {
  assert.equal(taken(stage(Number.POSITIVE_INFINITY).recorder, 10_000, 1), 10_000);
  assert.equal(taken(stage(0).recorder, 10_000, 1), 0);
});

test("F3 failures are recorded whatever the budget, and those that a failing store never accepted are counted", async () => {
  const { recorder, stored, change, pass } = stage(0);
  recorder.record(attempt("1"));
  await pass();
  assert.deepEqual(stored, ["1"]);
  change({ isDown: true });
  for (let id = 0; id < 25_000; id += 1) recorder.record(attempt(`late ${id}`));
  await turn();
  const { buffered, dropped, stored: written } = recorder.state;
  assert.deepEqual([written, buffered + dropped], [1, 25_000]);
  assert.ok(buffered <= 10_000);
  change({ isDown: false });
  await recorder.stop();
  assert.equal(recorder.state.stored + recorder.state.dropped, 25_001);
});

test("F3 old attempts are pruned in small steps, and again after the store was down", async () => {
  const { recorder, prunes, change, pass, sleeps } = stage(0, 40_000);
  assert.deepEqual(
    sleeps.map(({ ms }) => ms),
    [4_000],
    "no rarer than a tenth of what is kept",
  );
  change({ old: 2_500 });
  await pass();
  assert.deepEqual(prunes, [40_000, 40_000, 40_000]);
  change({ old: 1, isDown: true });
  await pass();
  change({ isDown: false });
  await pass();
  assert.equal(prunes.length, 4);
  await recorder.stop();
});
