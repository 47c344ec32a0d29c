import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "./plan-decision.ts";

const progress = (some: object) => ({ waiting: 0, sent: 0, done: 0, failed: 0, left: 0, ...some });
const facts = { action: "replay", stage: "first", doneNow: 0, failedNow: 0, failures: [] } as const;

test("F3 one event goes first, then ten, then the rest, a few times as many as have arrived", () => {
  const go = (stage: "first" | "ten" | "rest", doneNow: number, some: object) => {
    const decision = decide({ ...facts, stage, doneNow, progress: progress({ waiting: 9_999, ...some }) });
    return decision.kind === "go" ? [decision.stage, decision.room] : [decision.kind];
  };
  assert.deepEqual(go("first", 0, {}), ["first", 1]);
  assert.deepEqual(go("first", 0, { sent: 1 }), ["first", 0], "it waits for the first");
  assert.deepEqual(go("first", 0, { left: 1 }), ["first", 1], "one that was left alone proves nothing");
  assert.deepEqual(go("first", 1, {}), ["ten", 10]);
  assert.deepEqual(go("ten", 4, { sent: 3 }), ["ten", 4]);
  assert.deepEqual(go("ten", 11, { sent: 1 }), ["ten", 0]);
  assert.deepEqual(go("ten", 11, {}), ["rest", 50]);
  assert.deepEqual(go("rest", 100, { sent: 150 }), ["rest", 250]);
  assert.deepEqual(go("rest", 5_000, { sent: 1_999 }), ["rest", 1], "never more than 2,000 on their way");
  assert.deepEqual(decide({ ...facts, action: "discard", progress: progress({ waiting: 5 }) }), {
    kind: "go",
    stage: "rest",
    room: 1_000,
  });
  assert.deepEqual(decide({ ...facts, progress: progress({ done: 3 }) }), { kind: "done" });
});

test("F3 the same error ends a plan at any stage, any error ends the first two, and many others the last", () => {
  const other = { id: "e1", reason: "no", isSame: false };
  const stopped = (stage: "ten" | "rest", failures: readonly (typeof other)[], failedNow = 1) =>
    decide({ ...facts, stage, doneNow: 20, failedNow, failures, progress: progress({ waiting: 1 }) }).kind === "stop";
  assert.equal(stopped("ten", []), false);
  assert.equal(stopped("ten", [other]), true);
  assert.equal(stopped("rest", [other]), false);
  assert.equal(stopped("rest", [other], 20), true);
  assert.equal(stopped("rest", [other, { ...other, isSame: true }]), true);
  const last = decide({ ...facts, failures: [{ ...other, isSame: true }], progress: progress({ failed: 1 }) });
  assert.equal(last.kind, "stop", "also with the last event");
});
