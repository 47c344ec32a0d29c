import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Clock } from "../core/clock.ts";
import { DEFAULT_LIMITS, DEFAULT_TIMING } from "../core/limits.ts";
import { rejected, retry } from "../core/outcome.ts";
import { exponentialRetry, scheduledRetry } from "../core/retry-policy.ts";
import { ByteBudget } from "./byte-budget.ts";
import { attemptsMaxOf, nextAfterFailure } from "./failure-rule.ts";
import { fairShare } from "./fair-share.ts";
import { InstanceLease, sentAt } from "./instance-lease.ts";
import { LaneHolds } from "./lane-holds.ts";
import { checkLimits, checkTiming } from "./relay.ts";
import { claimSize } from "./suspects.ts";

test("B4 the lanes of a pipeline are shared out whole, and no instance has two more than another", () => {
  const instances = fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(instances, fc.integer({ min: 1, max: 64 }), fc.string(), (ids, lanes, pipeline) => {
      const shares = ids.map((id) => fairShare(ids, id, lanes, pipeline));
      assert.equal(
        shares.reduce((sum, share) => sum + share, 0),
        lanes,
      );
      assert.ok(Math.max(...shares) - Math.min(...shares) <= 1);
    }),
  );
});

function handClock() {
  const time = { wallMs: 1_000_000, monotonicMs: 0 };
  const clock: Clock = {
    wallMs: () => time.wallMs,
    monotonicMs: () => time.monotonicMs,
    sleep: () => new Promise(() => {}),
  };
  const advance = (ms: number) => {
    time.wallMs += ms;
    time.monotonicMs += ms;
  };
  return { time, clock, advance };
}

test("B4 an instance gives its lease up a margin early, counted from the moment the renewal was sent", () => {
  const { clock, advance } = handClock();
  const timing = { ...DEFAULT_TIMING, leaseMs: 10_000, leaseMarginMs: 2_000 };
  const lease = new InstanceLease("me", clock, timing, sentAt(clock));
  advance(1_000);
  const sent = sentAt(clock);
  advance(4_000);
  lease.renewed(sent);
  advance(3_999);
  assert.equal(lease.isAlive(), true);
  advance(1);
  assert.equal(lease.isAlive(), false);
  lease.renewed(sentAt(clock));
  assert.equal(lease.isAlive(), false, "a lost lease stays lost");
});

test("B4 a machine that slept has lost its lease, although its monotonic clock stood still", () => {
  const { clock, time } = handClock();
  const lease = new InstanceLease("me", clock, DEFAULT_TIMING, sentAt(clock));
  const sent = sentAt(clock);
  time.wallMs += 60_000;
  lease.renewed(sent);
  assert.equal(lease.isAlive(), false);
  assert.match(lease.reason, /clock jumped/);
});

test("F2 a failed event is retried, then parked, blocked or skipped; a final error is dead at once", () => {
  const policy = (onExhausted: "park" | "block" | "skip") => ({ retry: scheduledRetry([5]), onExhausted });
  const no = retry("no");
  assert.deepEqual(nextAfterFailure(policy("park"), no, 1, 0), { kind: "retry", delayMs: 5 });
  assert.deepEqual(nextAfterFailure(policy("park"), no, 2, 0), { kind: "dead", parks: true });
  assert.deepEqual(nextAfterFailure(policy("skip"), no, 2, 0), { kind: "dead", parks: false });
  assert.deepEqual(nextAfterFailure(policy("block"), no, 2, 0), { kind: "retry", delayMs: 1_000 });
  assert.deepEqual(nextAfterFailure(policy("block"), rejected("x"), 1, 0), { kind: "dead", parks: true });
  assert.deepEqual(nextAfterFailure(policy("park"), retry("no", { afterMs: 50 }), 1, 0), {
    kind: "retry",
    delayMs: 50,
  });
});

test("the attempts of a destination are those of its route with the most", () => {
  const routes = [
    { destination: "a", retry: scheduledRetry([1, 2, 3]) },
    { destination: "a", retry: exponentialRetry({ attemptsMax: 7 }) },
    { destination: "b" },
  ];
  assert.equal(attemptsMaxOf(routes, "a"), 7);
  assert.equal(attemptsMaxOf(routes, "b"), 10);
  assert.equal(attemptsMaxOf([{ destination: "c", onExhausted: "block" }], "c"), 2 ** 31 - 1);
});

const ROOM = { events: 10, bytes: 1_000, unknownBytes: 600 };

test("H1 held events are read as far as their bytes fit, and an event larger than the room is read alone", () => {
  const book = new LaneHolds();
  const rest = {
    key: null,
    dead: false,
    parks: false,
    attempts: 1,
    crashes: 0,
    unansweredSinceMs: null,
    waitsFor: null,
  };
  const sizes = [400, 500, 200, 5_000, undefined, undefined];
  for (const [dueAtMs, bytes] of sizes.entries()) book.put({ id: `e${dueAtMs}`, ...rest, dueAtMs, bytes });
  assert.deepEqual(book.claimDue(10, { ...ROOM, bytes: 0 }), []);
  assert.deepEqual(book.claimDue(10, ROOM), ["e0", "e1"]);
  assert.deepEqual(book.claimDue(10, ROOM), ["e2"]);
  assert.deepEqual(book.claimDue(10, ROOM), ["e3"]);
  assert.deepEqual(book.claimDue(10, ROOM), ["e4"], "of unknown size, and so is the next");
});

test("H1 however large the held events are, new events have half of the memory", () => {
  const budget = new ByteBudget(1);
  budget.add(900);
  assert.equal(budget.headBytesMax(1_000), 500);
  budget.add(600);
  assert.equal(budget.hasRoom({ bytes: 1_500, headBytes: 1_100 }, 1_000), true);
  assert.equal(budget.hasRoom({ bytes: 1_500, headBytes: 500 }, 1_000), false);
});

test("a due hold is read once, and the source does not overwrite the hold of an event in flight", () => {
  const book = new LaneHolds();
  const hold = { id: "a1", key: "a", lane: 0, state: "retrying" as const, parks: true, attempts: 1, crashes: 0 };
  book.replace([{ ...hold, dueInMs: 10 }], 0, () => false);
  assert.deepEqual(book.claimDue(5, ROOM), []);
  assert.deepEqual(book.claimDue(10, ROOM), ["a1"]);
  assert.deepEqual(book.claimDue(10, ROOM), []);
  assert.deepEqual(
    book.replace([], 10, () => false),
    [],
    "it is being read",
  );
  book.postpone("a1", 10);
  assert.deepEqual(
    book.replace([], 10, (id) => id === "a1"),
    [],
    "it is in flight",
  );
  assert.equal(book.parks("a"), true);
  assert.deepEqual(
    book.replace([], 10, () => false),
    ["a"],
  );
  assert.equal(book.parks("a"), false);
});

test("invalid settings are refused by name", () => {
  assert.throws(
    () => checkTiming({ ...DEFAULT_TIMING, publishTimeoutMs: 20_000 }),
    /publishTimeoutMs.*below timing.leaseMs/,
  );
  assert.throws(() => checkTiming({ ...DEFAULT_TIMING, pollIntervalMs: Number.NaN }), /pollIntervalMs is NaN/);
  assert.throws(() => checkLimits({ ...DEFAULT_LIMITS, batchSize: 0 }), /limits.batchSize is 0/);
});

test("B4 claims get smaller with every crash, but never empty, and never large again after many crashes", () => {
  assert.deepEqual(
    [0, 1, 2, 9, 32, 33, 200].map((crashes) => claimSize(3_000, 500, crashes)),
    [3_000, 250, 125, 1, 1, 1, 1],
  );
});
