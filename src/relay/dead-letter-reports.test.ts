import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { rejected } from "../core/outcome.ts";
import { scheduledRetry } from "../core/retry-policy.ts";
import type { TechnicalEventMap } from "../ports/technical-events.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay } from "./relay.ts";

const TIMING = { pollIntervalMs: 20, balanceMs: 50, circuitInitialMs: 20, circuitMaxMs: 100 };

function stage() {
  const source = memorySource();
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  const routes = [{ destination: "out" as const, retry: scheduledRetry([5, 5]), topic: topicOf }];
  const relay = createRelay({ sources: [source], destinations: { out: publisher }, routes, timing: TIMING, lanes: 1 });
  const dead: TechnicalEventMap["IntentDeadLettered"][] = [];
  const failed: TechnicalEventMap["IntentRelayFailed"][] = [];
  relay.on("IntentDeadLettered", (event) => dead.push(event));
  relay.on("IntentRelayFailed", (event) => failed.push(event));
  return { source, publisher, relay, dead, failed };
}

function topicOf({ type }: { type: string }): string {
  if (type === "unroutable") throw new TypeError("no topic for it");
  return type;
}

test("C2 A10 a dead letter is reported with its first and last failure and the error of every attempt", async () => {
  const { source, publisher, relay, dead, failed } = stage();
  await using _ = relay;
  let attempts = 0;
  publisher.respond(() => {
    attempts += 1;
    return { kind: "retry", scope: "event", reason: `no ${attempts}`, errorType: "TOO_EARLY" };
  });
  source.insert({ id: "a1", type: "t", key: "a", payload: "", correlationId: "c1" });
  await relay.start();
  await until("it is dead", () => dead.length === 1);
  const { recordId, intentType, key, correlationId, attempt, reason, errors, ...times } = dead[0]!;
  assert.deepEqual([recordId, intentType, key, correlationId, attempt], ["a1", "t", "a", "c1", 3]);
  assert.equal(reason, "no 3");
  assert.deepEqual(
    errors.map((error) => [error.attempt, error.reason]),
    [
      [1, "no 1"],
      [2, "no 2"],
      [3, "no 3"],
    ],
  );
  assert.deepEqual([times.firstFailedAt, times.lastFailedAt], [errors[0]?.at, errors[2]?.at]);
  assert.deepEqual([...new Set(failed.map(({ errorType }) => errorType))], ["TOO_EARLY"]);
});

test("C6 a thrown error is reported with its stack; an answered failure has none", async () => {
  const { source, publisher, relay, failed } = stage();
  await using _ = relay;
  publisher.respond(() => rejected("too large"));
  source.insert({ id: "thrown", type: "unroutable", key: null, payload: "" });
  source.insert({ id: "answered", type: "t", key: null, payload: "" });
  await relay.start();
  await until("both failed", () => failed.length === 2);
  const reported = Object.fromEntries(failed.map((event) => [event.recordId, event]));
  assert.match(reported.thrown?.stack ?? "", /^TypeError: no topic for it\n {4}at .*topicOf/);
  assert.deepEqual([reported.answered?.stack, reported.answered?.errorType], [null, "REJECTED"]);
});

test("C2 an event that ended the process each time is reported too, although no instance has it in memory", async () => {
  const { source, relay, dead } = stage();
  await using _ = relay;
  source.insert({ id: "a1", type: "t", key: "a", payload: "", correlationId: "c1" });
  const spec = { types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1_000, headersMax: 10 };
  const store = source.pipeline({ name: `${source.name}->out`, ...spec });
  await store.prepare();
  for (const owner of ["one", "two", "three"]) {
    await source.membership.join({ id: owner, name: owner, leaseMs: 2_000, pipelines: [] });
    const [{ grant, settledBatch: batch } = assert.fail("the lane was not free")] = await store.takeOver(owner, [0]);
    const nothing = { ledger: "none", delivered: [], failed: [], handedBack: [], releasedHolds: [] } as const;
    await store.settle({ ...nothing, grant, previousBatch: batch, batch, suspects: [{ id: "a1", key: "a" }] });
    // Gone without having released its lane: a crash.
    await source.membership.leave(owner);
  }
  await relay.start();
  await until("it is dead", () => dead.length === 1);
  const { recordId, intentType, correlationId, reason, errors } = dead[0]!;
  assert.deepEqual([recordId, intentType, correlationId, errors.length], ["a1", "t", "c1", 1]);
  assert.match(reason, /CRASH_POISON/);
});
