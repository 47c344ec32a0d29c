import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../core/clock.ts";
import type { Backlog } from "../ports/queue-store.ts";
import { BacklogWatch } from "./backlog-watch.ts";

class SetClock implements Clock {
  nowMs = 0;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  /** No patience at all: whoever sleeps is over it at once. */
  sleep = async () => {};
}

function scene(answers: (() => Promise<Backlog>)[]) {
  const clock = new SetClock();
  let asked = 0;
  const source = {
    pipeline: "orders.outbox->kafka",
    source: "orders.outbox",
    schema: "orders",
    backlog: () => answers[Math.min(asked++, answers.length - 1)]!(),
  };
  const watch = new BacklogWatch([source], clock);
  /** Asks twice, because the first may have had no patience for the answer. */
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
  dead: 0,
});
const gone = () => Promise.reject(new Error("the database is gone"));

test("A18 figures are asked for at most every five seconds", async () => {
  const { clock, figures, asked } = scene([async () => backlog(3, 1_000)]);
  assert.deepEqual(await figures(), {
    pipeline: "orders.outbox->kafka",
    source: "orders.outbox",
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

test("A13 while the database cannot be asked, the oldest event's age goes on growing", async () => {
  const { clock, figures } = scene([async () => backlog(3, 1_000), gone]);
  await figures();
  clock.nowMs += 60_000;
  const { lagMs, last } = await figures();
  assert.deepEqual([lagMs, last?.pending], [61_000, 3]);
});

test("A13 nothing waited when the database went: what came since may be as old as the silence", async () => {
  const { clock, figures } = scene([async () => backlog(0, null), gone, gone, async () => backlog(0, null)]);
  assert.equal((await figures()).lagMs, 0);
  clock.nowMs += 30_000;
  assert.equal((await figures()).lagMs, 30_000);
  clock.nowMs += 30_000;
  assert.equal((await figures()).lagMs, 60_000);
  clock.nowMs += 5_000;
  assert.equal((await figures()).lagMs, 0, "it answers again, and nothing waits");
});

test("A13 a source that was never readable is late since the start", async () => {
  const { clock, figures } = scene([gone]);
  clock.nowMs += 90_000;
  const { lagMs, last } = await figures();
  assert.deepEqual([last, lagMs], [null, 90_000]);
});

test("A13 A18 a database that hangs is not waited for", async () => {
  const { clock, figures, asked } = scene([async () => backlog(1, 500), () => new Promise<Backlog>(() => {})]);
  await figures();
  clock.nowMs += 20_000;
  assert.equal((await figures()).lagMs, 20_500);
  clock.nowMs += 20_000;
  assert.equal((await figures()).lagMs, 40_500);
  assert.equal(asked(), 2, "nobody else is sent to wait");
});
