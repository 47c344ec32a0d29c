import assert from "node:assert/strict";
import { test } from "node:test";
import { ANSWER_BOUNDS_MS, AnswerRing, bucketOf, countIn, quantileMs } from "./answer-histogram.ts";
import { AnswerBook, AnswerTimes } from "./answer-times.ts";

class SetClock {
  nowMs = 1_000_000;
  monotonicMs = () => this.nowMs;
  wallMs = () => this.nowMs;
}

interface Traffic {
  readonly seconds: number;
  readonly perSecond: number;
  readonly tookMs: number;
}

/** Evenly spread requests that all take equally long, with as many open at a time as that needs. */
function send(clock: SetClock, times: AnswerTimes, { perSecond, seconds, tookMs }: Traffic): void {
  const fromMs = clock.nowMs;
  for (let at = 0; at < seconds * perSecond; at += 1) {
    clock.nowMs = fromMs + ((at + 1) * 1_000) / perSecond;
    times.end(times.begin(clock.nowMs - tookMs), true);
  }
}

const USUAL = { seconds: 600, perSecond: 20, tookMs: 140 };

test("H1 every duration has one bucket, and the bounds belong to the bucket below", () => {
  assert.deepEqual([0, 1, 1.2, 3_000, 3_001, 9e9].map(bucketOf), [0, 0, 1, 21, 22, ANSWER_BOUNDS_MS.length]);
  for (const [at, bound] of ANSWER_BOUNDS_MS.entries()) assert.equal(bucketOf(bound), at);
});

test("H1 a ring forgets what is older than its slices, also after a long silence", () => {
  const ring = new AnswerRing(5_000, 60);
  for (let at = 0; at < 1_000; at += 1) ring.add(at * 1_000, 3);
  assert.equal(countIn(ring.since(999_000, 300_000)), 300);
  assert.equal(countIn(ring.since(999_000, 60_000)), 60);
  assert.equal(countIn(ring.since(5_000_000, 300_000)), 0);
});

test("H1 quantiles are those of the buckets; without an answer there are none", () => {
  assert.equal(quantileMs([10, 20], [0, 0, 0], 0.5), null);
  assert.equal(quantileMs([10, 20], [10, 10, 0], 0.75), 15);
  assert.equal(quantileMs([10, 20], [0, 0, 5], 0.5), 20, "beyond the last bound, that bound");
});

test("H1 p50 and p99 of one and five minutes are those of the answers, however long the events waited before", () => {
  const clock = new SetClock();
  const times = new AnswerTimes(clock);
  send(clock, times, { seconds: 300, perSecond: 10, tookMs: 9 });
  send(clock, times, { seconds: 60, perSecond: 10, tookMs: 90 });
  const { lastFiveMinutes, lastMinute, slow } = times.figures();
  assert.ok(lastMinute.p50Ms! > 70 && lastMinute.p99Ms! <= 100, JSON.stringify(lastMinute));
  assert.ok(lastFiveMinutes.p50Ms! < 10 && lastFiveMinutes.p99Ms! > 70, JSON.stringify(lastFiveMinutes));
  assert.equal(slow, null, "ten times slower, but still quick");
  clock.nowMs += 400_000;
  assert.deepEqual(times.figures().lastFiveMinutes, { requests: 0, p50Ms: null, p99Ms: null });
  assert.equal(countIn(times.totals.counts), 3_600);
  assert.equal(times.totals.sumMs, 3_000 * 9 + 600 * 90);
});

for (const [name, perSecond] of [
  ["busy", 3.3],
  ["with one connection", 1 / 3],
] as const) {
  test(`H1 a ${name} destination that takes 3 s per request is slow within 60 s, and quick again soon after`, () => {
    const clock = new SetClock();
    const times = new AnswerTimes(clock);
    send(clock, times, USUAL);
    const turnedMs = clock.nowMs;
    while (times.figures().slow === null && clock.nowMs - turnedMs < 60_000) {
      send(clock, times, { seconds: 3, perSecond, tookMs: 3_000 });
    }
    const { slow } = times.figures();
    assert.ok(slow !== null && clock.nowMs - turnedMs <= 30_000, `${clock.nowMs - turnedMs} ms`);
    assert.ok(slow.presentMs > 2_000 && slow.usualMs > 100 && slow.usualMs <= 150, JSON.stringify(slow));
    send(clock, times, { seconds: 3 * 3_600, perSecond, tookMs: 3_000 });
    assert.equal(
      times.figures().slow?.sinceMs,
      slow.sinceMs,
      "it stays slow: slow answers do not become the usual pace",
    );
    send(clock, times, { seconds: 25, perSecond: 20, tookMs: 140 });
    assert.equal(times.figures().slow, null);
  });
}

test("H1 a destination that stops answering is slow while its requests are open", () => {
  const clock = new SetClock();
  const times = new AnswerTimes(clock);
  send(clock, times, USUAL);
  const open = [times.begin(), times.begin(), times.begin()];
  clock.nowMs += 30_000;
  const { lastMinute, slow } = times.figures();
  assert.ok(slow !== null && slow.presentMs >= 15_000);
  assert.ok(lastMinute.p99Ms! >= 20_000 || lastMinute.p50Ms! < 200, JSON.stringify(lastMinute));
  for (const request of open) times.end(request, false);
  assert.equal(times.figures().slow, null, "an aborted request is no answer");
});

test("H1 a pace that lasts for a day is usual; a destination without a past is never slow", () => {
  const clock = new SetClock();
  const times = new AnswerTimes(clock);
  send(clock, times, { seconds: 60, perSecond: 1, tookMs: 3_000 });
  assert.equal(times.figures().slow, null);
  const other = new AnswerTimes(clock);
  send(clock, other, USUAL);
  send(clock, other, { seconds: 23 * 3_600, perSecond: 1, tookMs: 3_000 });
  assert.notEqual(other.figures().slow, null);
  send(clock, other, { seconds: 2 * 3_600, perSecond: 1, tookMs: 3_000 });
  assert.equal(other.figures().slow, null);
});

test("H1 a book keeps a bounded number of destinations", () => {
  const book = new AnswerBook(new SetClock());
  for (let at = 0; at < 1_000; at += 1) book.of(`d${at}`);
  assert.equal(book.all().size, 200);
  assert.equal(book.of("d7"), book.of("d7"));
  assert.equal(book.figuresOf("unknown"), null);
});
