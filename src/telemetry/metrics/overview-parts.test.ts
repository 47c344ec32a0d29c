import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../../core/clock.ts";
import { LATENCY_BOUNDS_MS } from "../../core/latency.ts";
import { TechnicalEventBus } from "../../relay/technical-event-bus.ts";
import type { BacklogCount } from "../backlog-watch.ts";
import { CachedQuery } from "../cached-query.ts";
import { MARKERS_MAX, MarkerBook } from "../marker-book.ts";
import { waitingOf } from "../waiting.ts";
import { DeliveryWindow } from "./delivery-window.ts";
import { FlowMeter } from "./flow-meter.ts";
import { POINT_EVERY_MS, PointRing } from "./point-ring.ts";

class SetClock implements Clock {
  nowMs = 1_000_000;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  sleep = () => new Promise<void>(() => {});
}

const PIPELINE = "orders.outbox->kafka";
const totals = (count: number) => new Map([[PIPELINE, count]]);

function counts(
  pending: number,
  atMs: number,
  more: { dead?: number; isEstimate?: boolean; hasFailed?: boolean } = {},
) {
  const { dead = 0, hasFailed = false, isEstimate = false } = more;
  const found = { pending, behindDead: 0, dead, isEstimate, oldestAgeMs: pending === 0 ? null : 7_000.4 };
  return new Map<string, BacklogCount>([[PIPELINE, { found, atMs, hasFailed }]]);
}

test("F3 only the points of the last hour are kept, however long the process runs", () => {
  const ring = new PointRing();
  const point = { written: null, published: 0, failed: 0, pending: null, oldestAgeMs: null, deadLetters: 0 };
  for (let at = 0; at < 2_000; at += 1) ring.add({ at: new Date(at * POINT_EVERY_MS).toISOString(), ...point });
  assert.equal(ring.points.length, 720);
  assert.equal(ring.last?.at, new Date(1_999 * POINT_EVERY_MS).toISOString());
  ring.add({ at: new Date(5_000 * POINT_EVERY_MS).toISOString(), ...point });
  assert.equal(ring.points.length, 1, "after a long sleep the old ones are gone");
});

test("F3 the delivery rate is the difference of two totals, over the last seconds", () => {
  const flow = new FlowMeter();
  flow.sample(0, new Map());
  assert.equal(flow.publishedPerSecond([PIPELINE], 0), null, "one sample gives no rate");
  flow.sample(10_000, totals(1_000));
  assert.equal(flow.publishedPerSecond([PIPELINE], 10_000), 100, "a new pipeline starts at zero");
  flow.sample(20_000, totals(1_500));
  assert.equal(flow.publishedPerSecond([PIPELINE], 20_000), 50);
  assert.equal(flow.publishedPerSecond([], 20_000), 0);
  assert.equal(flow.publishedSince([PIPELINE], 0), 75);
  assert.equal(flow.publishedPerSecond([PIPELINE], 60_000), null, "an old sample gives no current rate");
  flow.sample(30_000, totals(3));
  assert.equal(flow.publishedPerSecond([PIPELINE], 30_000), 0, "a reset total gives no negative rate");
});

test("F3 written is delivered plus growth of pending and dead; unknown beyond exact counts", () => {
  const flow = new FlowMeter();
  flow.sample(0, totals(1_000));
  flow.count(counts(10, 1_000));
  assert.equal(flow.writtenPerSecond([PIPELINE]), null);
  flow.sample(2_000, totals(1_100));
  flow.count(counts(60, 11_000, { dead: 5 }));
  flow.sample(12_000, totals(1_600));
  // 1,050 out and 10 waiting at the first count, 1,550 out, 60 waiting and 5 dead at the second, ten seconds later.
  assert.equal(flow.writtenPerSecond([PIPELINE]), 55.5);
  assert.equal(flow.writtenPerSecond([PIPELINE, "another"]), null);
  assert.equal(flow.writtenPerSecond([]), null);
  flow.count(counts(20_000, 12_000, { isEstimate: true }));
  assert.equal(flow.writtenPerSecond([PIPELINE]), null);
});

test("F3 the shrink rate is positive for a shrinking backlog and negative for a growing one", () => {
  const flow = new FlowMeter();
  assert.equal(flow.shrinkPerSecond, null);
  flow.count(counts(1_000, 0));
  flow.count(counts(1_000, 0));
  assert.equal(flow.shrinkPerSecond, null, "a repeated count is not a new one");
  flow.count(counts(500, 10_000));
  assert.equal(flow.shrinkPerSecond, 50);
  flow.count(counts(2_000, 40_000));
  assert.equal(flow.shrinkPerSecond, -50);
});

test("F3 the backlog is known only if every pipeline was counted recently", () => {
  assert.deepEqual(waitingOf(counts(3, 100), [PIPELINE], 50), {
    pending: 3,
    isEstimate: false,
    oldestAgeMs: 7_000,
    behindDeadLetters: 0,
  });
  const unknown = { pending: null, isEstimate: false, oldestAgeMs: null, behindDeadLetters: null };
  assert.deepEqual(waitingOf(counts(3, 100), [PIPELINE, "another"], 50), unknown);
  assert.deepEqual(waitingOf(counts(3, 100), [PIPELINE], 200), unknown);
  assert.deepEqual(waitingOf(counts(3, 100, { hasFailed: true }), [PIPELINE], 50), unknown);
  assert.deepEqual(waitingOf(counts(3, 100), [], 50), unknown);
});

const settled = (delivered: number, latencyMs: number) => {
  const counts = new Array<number>(LATENCY_BOUNDS_MS.length + 1).fill(0);
  counts[LATENCY_BOUNDS_MS.findIndex((bound) => latencyMs <= bound)] = delivered;
  const latency = { counts, sumMs: delivered * latencyMs };
  return { pipeline: PIPELINE, lane: 0, delivered, failed: 0, durationMs: 1, latency };
};
const failure = {
  ...{ pipeline: PIPELINE, recordId: "e1", intentType: "t", target: "kafka", key: null, correlationId: null },
  ...{ durationMs: 1, attempt: 1, reason: "no", scope: "event" as const, errorType: "x", stack: null, retryInMs: null },
};

test("F3 a destination's rates cover the last seconds, its latencies five minutes; its last error stays", () => {
  const clock = new SetClock();
  const window = new DeliveryWindow(clock);
  const bus = new TechnicalEventBus(clock);
  window.listen(bus, (pipeline) => (pipeline === PIPELINE ? "kafka" : undefined));
  assert.deepEqual(window.of("kafka"), {
    ...{ deliveredPerSecond: 0, failedPerSecond: 0, p50Ms: null, p99Ms: null, lastError: null },
  });
  clock.nowMs += 10_000;
  bus.emit("BatchSettled", settled(980, 100));
  bus.emit("BatchSettled", settled(20, 5_000));
  bus.emit("BatchSettled", { ...settled(7, 5), pipeline: "of another process" });
  bus.emit("IntentRelayFailed", failure);
  const { deliveredPerSecond, failedPerSecond, lastError, p50Ms, p99Ms } = window.of("kafka");
  assert.deepEqual([deliveredPerSecond, failedPerSecond], [100, 0.1]);
  assert.ok(p50Ms !== null && p50Ms > 50 && p50Ms <= 100, `p50 is ${p50Ms}`);
  assert.ok(p99Ms !== null && p99Ms > 2_500 && p99Ms <= 5_000, `p99 is ${p99Ms}`);
  assert.deepEqual(lastError, { at: new Date(clock.nowMs).toISOString(), reason: "no" });
  assert.deepEqual([window.deliveredTotal, window.failedTotal], [1_007, 1]);
  clock.nowMs += 30_000;
  assert.equal(window.of("kafka").deliveredPerSecond, 0);
  assert.equal(window.of("kafka").p50Ms, p50Ms);
  clock.nowMs += 300_000;
  bus.emit("CircuitOpened", { destination: "kafka", topic: null, reason: "x".repeat(5_000) });
  assert.equal(window.of("kafka").p50Ms, null);
  assert.equal(window.of("kafka").lastError?.reason.length, 500);
});

test("F3 circuits and pauses are marked once each, and the last hundred stay", () => {
  const clock = new SetClock();
  const book = new MarkerBook(clock);
  const bus = new TechnicalEventBus(clock);
  book.listen(bus);
  const paused = { pipeline: PIPELINE, by: "anna", reason: null };
  bus.emit("PipelineResumed", { pipeline: PIPELINE });
  bus.emit("PipelinePaused", paused);
  bus.emit("PipelinePaused", paused);
  bus.emit("PipelineResumed", { pipeline: PIPELINE });
  bus.emit("CircuitOpened", { destination: "kafka", topic: "t", reason: "no" });
  bus.emit("CircuitClosed", { destination: "kafka", topic: null });
  assert.deepEqual(
    book.markers.map(({ what }) => what),
    ["paused by anna", "resumed", "circuit of kafka topic t opened", "circuit of kafka closed"],
  );
  for (let at = 0; at < 500; at += 1) book.note(`${at}`);
  assert.deepEqual([book.markers.length, book.markers.at(-1)?.what], [MARKERS_MAX, "499"]);
});

test("F3 a query runs once at a time for all callers, less often if it is slow, and no caller waits for ever", async () => {
  const clock = new SetClock();
  let asked = 0;
  let answer: () => Promise<number> = async () => asked;
  const remembered = new CachedQuery(clock, 2_000, () => {
    asked += 1;
    return answer();
  });
  const first = await Promise.all([remembered.answer(1), remembered.answer(1), remembered.answer(1)]);
  assert.deepEqual([asked, ...first.map(({ known }) => known?.value)], [1, 1, 1, 1]);
  clock.nowMs += 1_999;
  await remembered.answer(1);
  assert.equal(asked, 1);
  clock.nowMs += 1;
  answer = () => Promise.reject(new Error("gone"));
  const failed = await remembered.answer(1);
  assert.deepEqual([asked, failed.known?.value, (failed.problem as Error).message], [2, 1, "gone"]);
  clock.nowMs += 2_000;
  answer = async () => {
    clock.nowMs += 500;
    return asked;
  };
  assert.deepEqual([(await remembered.answer(1)).known?.value, asked], [3, 3]);
  clock.nowMs += 9_999;
  await remembered.answer(1);
  assert.equal(asked, 3, "half a second of query time needs ten seconds of rest");
  clock.nowMs += 1;
  clock.sleep = async () => {};
  answer = () => new Promise(() => {});
  const late = await remembered.answer(1);
  assert.deepEqual([asked, late.isLate, late.known?.value], [4, true, 3]);
});
