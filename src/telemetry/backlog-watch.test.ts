import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../core/clock.ts";
import type { Backlog } from "../ports/queue-store.ts";
import { BacklogWatch } from "./backlog-watch.ts";

class SetClock implements Clock {
  nowMs = 0;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  /** Every sleep ends at once, so every wait times out. */
  sleep = async () => {};
}

const ends = { pipeline: "orders.outbox->kafka", destination: "kafka" };

function scene(answers: (() => Promise<Backlog>)[]) {
  const clock = new SetClock();
  let asked = 0;
  const source = {
    source: "orders.outbox",
    schema: "orders",
    pipelines: [ends],
    count: async () => {
      const found = await answers[Math.min(asked++, answers.length - 1)]!();
      return { pipelines: new Map([[ends.pipeline, found]]), unrouted: null };
    },
  };
  const watch = new BacklogWatch([source], clock);
  /** Asks twice, because the first call can return before the answer. */
  const figures = async () => {
    await watch.figures(0);
    await new Promise((resolve) => setImmediate(resolve));
    return (await watch.figures(0))[0]!;
  };
  return { clock, figures, asked: () => asked };
}

const backlog = (pending: number, oldestAgeMs: number | null): Backlog => ({
  pending,
  oldestAgeMs,
  isEstimate: false,
  behindDead: 0,
  dead: 0,
});
const gone = () => Promise.reject(new Error("the database is gone"));

test("A18 figures are asked for at most every five seconds", async () => {
  const { clock, figures, asked } = scene([async () => backlog(3, 1_000)]);
  assert.deepEqual(await figures(), {
    pipeline: "orders.outbox->kafka",
    source: "orders.outbox",
    destination: "kafka",
    schema: "orders",
    last: backlog(3, 1_000),
    lagMs: 1_000,
  });
  clock.nowMs += 4_999;
  await figures();
  assert.equal(asked(), 1);
  clock.nowMs += 1;
  await figures();
  assert.equal(asked(), 2);
});

test("A13 while the database does not answer, the oldest event's age keeps growing", async () => {
  const { clock, figures } = scene([async () => backlog(3, 1_000), gone]);
  await figures();
  clock.nowMs += 60_000;
  const { lagMs, last } = await figures();
  assert.deepEqual([lagMs, last?.pending], [61_000, 3]);
});

test("A13 after an empty backlog, events can have arrived since the database stopped answering", async () => {
  const { clock, figures } = scene([async () => backlog(0, null), gone, gone, async () => backlog(0, null)]);
  assert.equal((await figures()).lagMs, 0);
  clock.nowMs += 30_000;
  assert.equal((await figures()).lagMs, 30_000);
  clock.nowMs += 30_000;
  assert.equal((await figures()).lagMs, 60_000);
  clock.nowMs += 5_000;
  assert.equal((await figures()).lagMs, 0, "it answers again, and nothing waits");
});

test("A13 a source that was never readable lags since the start", async () => {
  const { clock, figures } = scene([gone]);
  clock.nowMs += 90_000;
  const { lagMs, last } = await figures();
  assert.deepEqual([last, lagMs], [null, 90_000]);
});

test("A13 A18 no caller waits for a database that hangs", async () => {
  const { clock, figures, asked } = scene([async () => backlog(1, 500), () => new Promise<Backlog>(() => {})]);
  await figures();
  clock.nowMs += 20_000;
  assert.equal((await figures()).lagMs, 20_500);
  clock.nowMs += 20_000;
  assert.equal((await figures()).lagMs, 40_500);
  assert.equal(asked(), 2, "no second query while one hangs");
});
