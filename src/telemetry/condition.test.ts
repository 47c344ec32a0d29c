import assert from "node:assert/strict";
import { test } from "node:test";
import { TechnicalEventBus } from "../relay/technical-event-bus.ts";
import { Condition } from "./condition.ts";
import { FlowMeter } from "./metrics/flow-meter.ts";
import { stallOf } from "./pipeline-standing.ts";

const pipeline = "orders.outbox->kafka";

class SetClock {
  nowMs = 1_000_000;
  wallMs = () => this.nowMs;
  monotonicMs = () => this.nowMs;
  sleep = async () => {};
}

test("H1 a lane that fails repeatedly without a settle, and a chore that keeps failing, are reported with their start", () => {
  const clock = new SetClock();
  const bus = new TechnicalEventBus(clock);
  const condition = new Condition(clock);
  condition.listen(bus);
  const lost = { pipeline, lane: 3, code: "DATABASE_UNREACHABLE", reason: "reset" } as const;
  const chore = { pipeline, chore: "prune", reason: "permission denied" };
  const shown = () => [condition.failingLanes().length, condition.failedChores().length];
  for (const [times, expected] of [[1, [0, 0]] as const, [2, [0, 1]] as const, [3, [1, 1]] as const]) {
    bus.emit("LaneFailed", lost);
    bus.emit("ChoreFailed", chore);
    clock.nowMs += 5_000;
    assert.deepEqual(shown(), expected, `${times} times`);
  }
  bus.emit("BatchSettled", { pipeline, lane: 2, delivered: 1, failed: 0, durationMs: 1, latency: null });
  assert.deepEqual(shown(), [1, 1], "another lane works");
  bus.emit("BatchSettled", { pipeline, lane: 3, delivered: 1, failed: 0, durationMs: 1, latency: null });
  clock.nowMs += 180_001;
  assert.deepEqual(shown(), [0, 0]);
  for (let times = 0; times < 2; times += 1) bus.emit("LaneFailed", lost);
  assert.deepEqual(shown(), [0, 0], "after a recovery the count starts again");
});

test("H1 a pipeline is stalled when events wait, none is delivered, and nothing else explains it", () => {
  const clock = new SetClock();
  const flow = new FlowMeter();
  for (let second = 0; second <= 120; second += 10)
    flow.sample(second * 1_000, new Map([[pipeline, second < 30 ? second : 30]]));
  assert.deepEqual([flow.idleForMs(pipeline), flow.idleForMs("other")], [90_000, 120_000]);
  const found = { pending: 5, isEstimate: false, oldestAgeMs: 70_000, behindDead: 0, dead: 0 };
  const known = { retrying: 0, parkedKeys: 0, parkedSince: null, deadSince: null, pause: null };
  const facts = {
    ...{ pipeline, destination: "kafka", idleForMs: 90_000, unreachable: [] as string[] },
    ...{ count: { found, atMs: 0, hasFailed: false }, known },
  };
  const condition = () => new Condition(clock);
  assert.deepEqual(stallOf(facts, condition()), { pipeline, pending: 5, forMs: 90_000 });
  const explained: readonly Partial<typeof facts>[] = [
    { idleForMs: 59_000 },
    { unreachable: ["kafka"] },
    { count: { ...facts.count, hasFailed: true } },
    { count: { ...facts.count, found: { ...found, pending: 0, oldestAgeMs: 70_000 } } },
    { count: { ...facts.count, found: { ...found, oldestAgeMs: 59_000 } } },
    { known: { ...known, retrying: 1 } },
    { known: { ...known, pause: { at: "2026-01-01T00:00:00Z", by: "anna" } as never } },
  ];
  for (const change of explained)
    assert.equal(stallOf({ ...facts, ...change }, condition()), null, JSON.stringify(change));
  const current = condition();
  const bus = new TechnicalEventBus(clock);
  current.listen(bus);
  bus.emit("CircuitOpened", { destination: "kafka", topic: null, reason: "r" });
  assert.equal(stallOf(facts, current), null);
});
