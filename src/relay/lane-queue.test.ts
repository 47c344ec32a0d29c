import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Failed, retry } from "../core/outcome.ts";
import { type Entry, LaneQueue } from "./lane-queue.ts";

let made = 0;

function entry(key: string | null, fault: string | null = null): Entry {
  made += 1;
  const event = { id: `e${made}`, type: "t", key, payload: Buffer.alloc(0), headers: {} };
  const claimed = { ...event, correlationId: null, createdAt: null, lane: 0, failures: 0, fault: null };
  return {
    event: claimed,
    bytes: 0,
    message: null,
    fault,
    faultError: null,
    isHead: false,
    claimedMs: 0,
    run: 1,
    owner: {},
    topicProbe: false,
    unansweredSends: 0,
    unansweredSinceMs: null,
    isIsolated: false,
    hasFailed: false,
    line: null,
    place: 0,
    behind: null,
  };
}

const no: Failed = retry("no");

test("F2 a key is in one publish at a time, other keys do not wait for it", () => {
  const queue = new LaneQueue();
  const [a1, a2, b1] = [entry("a"), entry("a"), entry("b")];
  for (const each of [a1, a2, b1]) queue.push(each);
  assert.deepEqual(queue.take(10, false), [a1, b1]);
  assert.deepEqual(queue.take(10, false), []);
  queue.delivered(a1);
  assert.deepEqual(queue.take(10, false), [a2]);
});

test("events without a key never wait for each other", () => {
  const queue = new LaneQueue();
  const [n1, n2] = [entry(null), entry(null)];
  queue.push(n1);
  queue.push(n2);
  assert.deepEqual(queue.take(10, false), [n1, n2]);
});

test("failures of a key are reported together and in order, when all its sent events are answered", () => {
  const queue = new LaneQueue();
  const [a1, a2, a3] = [entry("a"), entry("a"), entry("a")];
  for (const each of [a1, a2, a3]) queue.push(each);
  queue.take(10, true);
  assert.deepEqual(queue.failed(a3, no), []);
  assert.deepEqual(queue.failed(a2, no), []);
  assert.deepEqual(
    queue.delivered(a1).map((failure) => failure.entry),
    [a2, a3],
  );
  queue.putBack([a2, a3]);
  assert.deepEqual(queue.take(10, true), [a2, a3]);
});

test("nothing overtakes a faulty event of its key", () => {
  const queue = new LaneQueue();
  const [a1, bad, a3] = [entry("a"), entry("a", "unreadable"), entry("a")];
  for (const each of [a1, bad, a3]) queue.push(each);
  assert.deepEqual(queue.take(10, true), [a1]);
  queue.delivered(a1);
  assert.deepEqual(queue.take(10, true), [bad]);
  queue.delivered(bad);
  assert.deepEqual(queue.take(10, true), [a3]);
});

test("dropping a topic also drops later events of the same keys, and nothing else", () => {
  const queue = new LaneQueue();
  const [a1, a2, b1] = [entry("a"), entry("a"), entry("b")];
  for (const each of [a1, a2, b1]) queue.push(each);
  assert.deepEqual(
    queue.dropLinesWith((each) => each === a1),
    [a1, a2],
  );
  assert.equal(queue.waiting, 1);
  assert.deepEqual(queue.take(10, true), [b1]);
});

type Step = { do: "push"; key: string | null } | { do: "take"; max: number } | { do: "answer"; fails: boolean };

const step = fc.oneof(
  fc.record({ do: fc.constant("push" as const), key: fc.constantFrom("a", "b", "c", null) }),
  fc.record({ do: fc.constant("take" as const), max: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ do: fc.constant("answer" as const), fails: fc.boolean() }),
);

function play(steps: readonly Step[], manyOfKey: boolean) {
  const queue = new LaneQueue();
  const pushed: Entry[] = [];
  const delivered: Entry[] = [];
  let wire: Entry[] = [];
  const answer = (fails: boolean) => {
    const sent = wire.shift();
    if (sent === undefined) return;
    if (!fails) delivered.push(sent);
    const failures = fails ? queue.failed(sent, no) : queue.delivered(sent);
    queue.putBack(failures.map((failure) => failure.entry));
  };
  for (const each of steps) {
    if (each.do === "push") pushed.push(entry(each.key));
    if (each.do === "push") queue.push(pushed.at(-1)!);
    if (each.do === "take") wire = [...wire, ...queue.take(each.max, manyOfKey)];
    // Only the last sent event of a key may fail alone here: a publisher that keeps the order skips the later ones.
    if (each.do === "answer") answer(each.fails && !manyOfKey);
  }
  while (wire.length > 0 || queue.waiting > 0) {
    while (wire.length > 0) answer(false);
    wire = queue.take(100, manyOfKey);
  }
  return { pushed, delivered };
}

test("each pushed event comes out once, in the order of its key, despite failures and returns", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.boolean(), (steps, manyOfKey) => {
      const { pushed, delivered } = play(steps, manyOfKey);
      assert.equal(delivered.length, pushed.length);
      for (const key of ["a", "b", "c"]) {
        const of = (entries: Entry[]) => entries.filter((each) => each.event.key === key);
        assert.deepEqual(of(delivered), of(pushed));
      }
    }),
  );
});
