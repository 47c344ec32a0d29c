import assert from "node:assert/strict";
import { test } from "node:test";
import { assertWithin } from "../../test/servers/pace.ts";
import { until } from "../../test/servers/until.ts";
import { rejected, retry } from "../core/outcome.ts";
import { scheduledRetry } from "../core/retry-policy.ts";
import type { AttemptRecorder, RecordedAttempt } from "../ports/attempt-recorder.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

const TIMING = { pollIntervalMs: 20, balanceMs: 20, circuitInitialMs: 20, circuitMaxMs: 100 };

function stage(takesDelivered: boolean) {
  const source = memorySource();
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  const recorded: RecordedAttempt[] = [];
  const recorder: AttemptRecorder = {
    takesDelivered: () => takesDelivered,
    record: (attempt) => void recorded.push(attempt),
  };
  const routes = [{ destination: "out" as const, retry: scheduledRetry([5, 5]), headers: () => ({ sent: "yes" }) }];
  const parts = { sources: [source], destinations: { out: publisher }, routes, timing: TIMING, lanes: 1 };
  return { source, publisher, relay: createRelay({ ...parts, recorder }), recorded };
}

test("F3 a delivered event is recorded with all its times, from the write to the answer", async () => {
  const { source, publisher, relay, recorded } = stage(true);
  await using _ = relay;
  source.insert({ id: "a1", type: "t", key: "a", payload: "{}", correlationId: "c1" });
  await relay.start();
  await until("it is recorded", () => recorded.length === 1);
  const { atMs, claimedAtMs, durationMs, headers, sentAtMs, writtenAt, ...rest } = recorded[0]!;
  assert.deepEqual(rest, {
    pipeline: "memory->out",
    eventId: "a1",
    eventType: "t",
    eventKey: "a",
    correlationId: "c1",
    outcome: "delivered",
    attempt: 1,
    reason: null,
    errorType: null,
    target: "t",
  });
  const way = [Date.parse(writtenAt ?? ""), claimedAtMs!, sentAtMs!, atMs];
  for (const [index, ms] of way.slice(1).entries()) assert.ok(ms >= way[index]! - 1, JSON.stringify(way));
  assert.ok(Math.abs(sentAtMs! + durationMs! - atMs) < 1e-3);
  assert.deepEqual(headers, publisher.delivered[0]?.headers);
});

test("F3 every failed attempt is recorded, the last one as dead, and deliveries only when the recorder takes them", async () => {
  const { source, publisher, relay, recorded } = stage(false);
  await using _ = relay;
  publisher.respond(({ event }) => {
    if (event.id === "bad") return retry("not yet", { errorType: "TOO_EARLY" });
    return event.id === "worse" ? rejected("never") : { kind: "delivered" };
  });
  for (const id of ["bad", "good", "worse"]) source.insert({ id, type: "t", key: id, payload: "{}" });
  await relay.start();
  await until("all have an outcome", () => recorded.length === 4 && publisher.delivered.length === 1);
  const of = (id: string) => recorded.filter(({ eventId }) => eventId === id).map((it) => [it.attempt, it.outcome]);
  assert.deepEqual(of("bad"), [
    [1, "failed"],
    [2, "failed"],
    [3, "dead"],
  ]);
  assert.deepEqual([of("worse"), of("good")], [[[1, "dead"]], []]);
  const { errorType, headers, reason } = recorded.find(({ eventId }) => eventId === "bad")!;
  assert.deepEqual([errorType, reason, headers?.sent], ["TOO_EARLY", "not yet", "yes"]);
});

test("F3 an event that was never sent has no send time, and an outage is recorded although it spends no attempt", async () => {
  const { source, publisher, relay, recorded } = stage(true);
  await using _ = relay;
  publisher.down("connection refused");
  source.insert({ id: "a1", type: "t", key: "a", payload: "{}" });
  await relay.start();
  await until("it failed", () => recorded.length > 0);
  assert.deepEqual([recorded[0]?.outcome, recorded[0]?.attempt], ["failed", 1]);
  publisher.up();
  await until("it arrived", () => recorded.some(({ outcome }) => outcome === "delivered"));
  assert.equal(recorded.at(-1)?.attempt, 1);
  source.insert({ id: "x", type: "t", key: null, payload: "x".repeat(20_000_000) });
  const dead = await until("it is dead", () => recorded.find(({ eventId }) => eventId === "x"));
  assert.deepEqual([dead.outcome, dead.sentAtMs, dead.headers, dead.durationMs], ["dead", null, null, null]);
});

test("F4 an operator's rate limit holds for all lanes together while it is set", async () => {
  const source = memorySource();
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  // The only instance of a pipeline surveys it twice per lease.
  const timing = { ...TIMING, leaseMs: 1_000, leaseMarginMs: 200, publishTimeoutMs: 300 };
  const relay = createRelay({ sources: [source], destinations: { out: publisher }, timing, lanes: 4 });
  await using _ = relay;
  source.insert({ id: "first", type: "t", key: "first", payload: "" });
  await relay.start();
  await publisher.arrived(1);
  source.database.limit("memory->out", 50);
  const beganMs = performance.now();
  await until("a survey was made", () => performance.now() - beganMs > timing.leaseMs / 2 + 100);
  const sentMs = performance.now();
  for (let id = 0; id < 60; id += 1) source.insert({ id: `e${id}`, type: "t", key: `k${id}`, payload: "" });
  await publisher.arrived(41);
  const tookMs = performance.now() - sentMs;
  assert.ok(tookMs > 600, `40 events at 50 a second took ${tookMs} ms`);
  for (let id = 60; id < 500; id += 1) source.insert({ id: `e${id}`, type: "t", key: `k${id}`, payload: "" });
  source.database.limit("memory->out", null);
  const endedMs = performance.now();
  await publisher.arrived(501);
  await assertWithin(performance.now() - endedMs, 5_000, "what was held back");
});
