import assert from "node:assert/strict";
import { test } from "node:test";
import { isoOfInput, localInput } from "./local-time.ts";
import { leftMs, stepsOf } from "./plan-steps.ts";

const states = (...plan: Parameters<typeof stepsOf>) => stepsOf(...plan).map(({ state }) => state);

test("F3 a plan is shown at its stage: one event, ten, the rest", () => {
  const plan = { action: "replay", stage: "first", state: "planned", count: 50, strata: [1] } as const;
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
  assert.deepEqual(states({ action: "discard", stage: "first", state: "running", count: 50, strata: [1] }), [
    "past",
    "now",
    "to come",
  ]);
});

test("F3 a small plan shows only the stages that it has", () => {
  const labels = (count: number) =>
    stepsOf({ action: "replay", stage: "first", state: "planned", count, strata: [1] }).map(({ label }) => label);
  assert.deepEqual(labels(1), ["Plan", "The event", "Done"]);
  assert.deepEqual(labels(2), ["Plan", "One event", "The other one", "Done"]);
  assert.deepEqual(labels(11), ["Plan", "One event", "The other 10", "Done"]);
  assert.deepEqual(labels(200), ["Plan", "One event", "Ten more", "The other 189", "Done"]);
  const kinds = stepsOf({ action: "replay", stage: "first", state: "planned", count: 24, strata: [1, 2] });
  assert.deepEqual(
    kinds.map(({ label }) => label),
    ["Plan", "One of each of 2 kinds", "Up to ten more of each", "The others", "Done"],
  );
  const stage = (stage: "first" | "ten" | "rest") =>
    states({ action: "replay", stage, state: "running", count: 2, strata: [1] });
  assert.deepEqual(stage("ten"), ["past", "past", "now", "to come"]);
  assert.deepEqual(stage("rest"), ["past", "past", "now", "to come"]);
});

test("F3 how long a plan still takes is changes by its pace, once there is one", () => {
  const now = Date.parse("2026-11-16T10:00:10Z");
  const progress = { waiting: 80, sent: 10, done: 30, failed: 0, left: 0 };
  const plan = { progress, startedAt: "2026-11-16T10:00:00Z", state: "running" } as const;
  assert.equal(leftMs(plan, now), 30_000);
  assert.equal(leftMs({ ...plan, state: "paused" }, now), null);
  assert.equal(leftMs({ ...plan, progress: { ...progress, done: 3 } }, now), null);
});

test("F3 a time in a field is read back as the same moment", () => {
  assert.equal(isoOfInput(localInput("2026-03-29T00:30:00.000Z")), "2026-03-29T00:30:00.000Z");
  assert.equal(isoOfInput(""), "");
  assert.equal(localInput("nonsense"), "");
});
