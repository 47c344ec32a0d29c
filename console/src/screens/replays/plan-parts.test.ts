import assert from "node:assert/strict";
import { test } from "node:test";
import { isoOfInput, localInput } from "./local-time.ts";
import { leftMs, stepsOf } from "./plan-steps.ts";

const states = (...plan: Parameters<typeof stepsOf>) => stepsOf(...plan).map(({ state }) => state);

test("F3 a plan is shown at its stage: one event, ten, the rest", () => {
  const plan = { action: "replay", stage: "first", state: "planned" } as const;
  assert.deepEqual(states(plan), ["now", "to come", "to come", "to come", "to come"]);
  assert.deepEqual(states({ ...plan, state: "running" }), ["past", "now", "to come", "to come", "to come"]);
  assert.deepEqual(states({ ...plan, state: "paused", stage: "rest" }), ["past", "past", "past", "now", "to come"]);
  assert.deepEqual(states({ ...plan, state: "stopped", stage: "ten" }), [
    "past",
    "past",
    "failed",
    "to come",
    "to come",
  ]);
  assert.deepEqual(states({ ...plan, state: "done", stage: "rest" }), ["past", "past", "past", "past", "past"]);
  assert.deepEqual(states({ action: "discard", stage: "first", state: "running" }), ["past", "now", "to come"]);
});

test("F3 how long a plan still takes is told by its pace, once there is one", () => {
  const now = Date.parse("2026-11-16T10:00:10Z");
  const progress = { waiting: 80, sent: 10, done: 30, failed: 0, left: 0 };
  const plan = { progress, startedAt: "2026-11-16T10:00:00Z", state: "running" } as const;
  assert.equal(leftMs(plan, now), 30_000);
  assert.equal(leftMs({ ...plan, state: "paused" }, now), null);
  assert.equal(leftMs({ ...plan, progress: { ...progress, done: 3 } }, now), null);
});

test("F3 a time that is put into a field comes back as the same moment", () => {
  assert.equal(isoOfInput(localInput("2026-03-29T00:30:00.000Z")), "2026-03-29T00:30:00.000Z");
  assert.equal(isoOfInput(""), "");
  assert.equal(localInput("nonsense"), "");
});
