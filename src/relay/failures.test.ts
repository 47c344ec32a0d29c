import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import { rejected, retry } from "../core/outcome.ts";
import { exponentialRetry, scheduledRetry } from "../core/retry-policy.ts";
import type { Grant, PipelineSpec, QueueStore } from "../ports/queue-store.ts";
import type { TechnicalEvent } from "../ports/technical-events.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { defineIntentRelay, intentRoute } from "../routing/intent-relay.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { ids, QUICK, stage } from "./failure-stage.test.ts";
import { createRelay } from "./relay.ts";

test("F2 park: a dead first event blocks its key; other keys and events without a key continue", async () => {
  const { source, publisher, relay, insert } = stage();
  await using _ = relay;
  publisher.respond(({ event }) => (event.id === "a1" ? retry("no") : { kind: "delivered" }));
  insert("a", "a1", "a2", "a3");
  insert("b", "b1", "b2");
  insert(null, "n1");
  await relay.start();
  await until("a1 is dead", () => source.deadLetters().length === 1);
  await until("the rest is there", () => publisher.delivered.length === 3);
  assert.deepEqual(ids(publisher.deliveredOf("a")), []);
  assert.deepEqual(ids(publisher.deliveredOf("b")), ["b1", "b2"]);

  publisher.respond(null);
  source.replay("a1");
  await until("the key flows again", () => publisher.deliveredOf("a").length === 3);
  assert.deepEqual(ids(publisher.deliveredOf("a")), ["a1", "a2", "a3"]);
});

test("F2 skip: the events behind a dead first event are delivered", async () => {
  const { source, publisher, relay, insert } = stage({ onExhausted: "skip" });
  await using _ = relay;
  publisher.respond(({ event }) => (event.id === "a1" ? retry("no") : { kind: "delivered" }));
  insert("a", "a1", "a2", "a3");
  const report = await relay.drain();
  await until("followers are there", () => publisher.delivered.length === 2);
  assert.deepEqual(ids(publisher.delivered), ["a2", "a3"]);
  assert.equal(source.deadLetters().length, 1);
  assert.ok(report.retrying + report.deadLetters === 1);
});

test("F2 block: an exhausted first event is retried for ever and nothing is dead", async () => {
  const { source, publisher, relay, insert, of } = stage({
    onExhausted: "block",
    retry: exponentialRetry({ initialMs: 1, maxMs: 5, attemptsMax: 2 }),
  });
  await using _ = relay;
  publisher.respond(({ event }) => (event.id === "a1" ? retry("no") : { kind: "delivered" }));
  insert("a", "a1", "a2");
  await relay.start();
  await until("six failures", () => of("IntentRelayFailed").length >= 6);
  assert.equal(source.deadLetters().length, 0);
  publisher.respond(null);
  await until("all there", () => publisher.delivered.length === 2);
  assert.deepEqual(ids(publisher.delivered), ["a1", "a2"]);
});

test("A9 A10 D5 after the last listed delay the event is a dead letter with the error of every attempt", async () => {
  const { source, publisher, relay, insert } = stage();
  await using _ = relay;
  let tries = 0;
  publisher.respond(() => retry(`failure ${++tries}`));
  insert("a", "a1");
  await relay.start();
  const [letter] = await until("dead", () => (source.deadLetters().length > 0 ? source.deadLetters() : null));
  assert.equal(tries, 3);
  assert.deepEqual(
    letter?.errors.map((error) => error.reason),
    ["failure 1", "failure 2", "failure 3"],
  );
});

test("B3 an error that no retry can cure is dead at once", async () => {
  const { source, publisher, relay, insert } = stage();
  await using _ = relay;
  let tries = 0;
  publisher.respond(() => {
    tries += 1;
    return rejected("too large by one byte");
  });
  insert("a", "a1");
  await relay.start();
  await until("dead", () => source.deadLetters().length === 1);
  assert.equal(tries, 1);
});

test("Retry-After is honoured when it is longer than the policy's delay", async () => {
  const { publisher, relay, insert, of } = stage({ retry: scheduledRetry([1, 1, 1]) });
  await using _ = relay;
  publisher.failNext(1, retry("slow down", { afterMs: 150 }));
  insert("a", "a1");
  const startedMs = performance.now();
  await relay.start();
  await publisher.arrived(1);
  assert.ok(performance.now() - startedMs >= 150);
  assert.equal(of("IntentRelayFailed").length, 1);
});

test("A4 an outage of the destination costs no attempts, and the backlog then drains by itself, in order", async () => {
  const { source, publisher, relay, insert, of } = stage({ retry: scheduledRetry([]) });
  await using _ = relay;
  publisher.down("connection refused");
  for (let i = 0; i < 50; i += 1) insert(`k${i % 5}`, `e${i}`);
  await relay.start();
  await until("the circuit is open", () => of("CircuitOpened").length === 1);
  await until("some probes failed", () => of("IntentRelayFailed").length > 12);
  publisher.up();
  await publisher.arrived(50);
  assert.equal(source.deadLetters().length, 0);
  assert.equal(source.holds().length, 0);
  assert.deepEqual(
    ids(publisher.deliveredOf("k0")),
    [0, 5, 10, 15, 20, 25, 30, 35, 40, 45].map((i) => `e${i}`),
  );
});

test("F4 a topic that takes nothing blocks only its own events and their keys", async () => {
  const { source, publisher, relay, of } = stage({ retry: scheduledRetry([]) });
  await using _ = relay;
  let broken = true;
  publisher.respond(({ topic }) =>
    broken && topic === "bad" ? retry("unknown topic", { scope: "topic" }) : { kind: "delivered" },
  );
  for (let i = 0; i < 40; i += 1) {
    source.insert({ id: `bad${i}`, type: "bad", key: `k${i}` }, { id: `good${i}`, type: "good", key: `g${i}` });
  }
  source.insert({ id: "after", type: "good", key: "k0" });
  await relay.start();
  await until("the good ones are there", () => publisher.delivered.length === 40);
  assert.ok(of("CircuitOpened").some((event) => event.name === "CircuitOpened" && event.topic === "bad"));
  assert.equal(source.deadLetters().length, 0);
  broken = false;
  await until("all there", () => publisher.delivered.length === 81);
  assert.deepEqual(ids(publisher.deliveredOf("k0")), ["bad0", "after"]);
});

test("F4 an event that is never answered is held, and the others are delivered", async () => {
  const { source, publisher, relay, insert } = stage({ retry: scheduledRetry([]) });
  await using _ = relay;
  publisher.respond(({ event }) => (event.id === "mute" ? "hang" : { kind: "delivered" }));
  insert("m", "mute", "m2");
  await relay.start();
  for (let i = 0; i < 200; i += 1) insert(`k${i}`, `e${i}`);
  await until("the others are there", () => publisher.delivered.length === 200);
  let more = 0;
  await until("mute is dead", () => {
    insert("x", `x${more++}`);
    return source.deadLetters().length === 1;
  });
  assert.equal(source.deadLetters()[0]?.event.id, "mute");
});

test("the brake: a hundred equal failures open the circuit before everything becomes a dead letter", async () => {
  const { source, publisher, relay, insert, of } = stage(
    { retry: scheduledRetry([]) },
    { limits: { failuresInRowMax: 100, batchSize: 10 } },
  );
  await using _ = relay;
  let broken = true;
  publisher.respond(({ event }) => (broken ? rejected(`no such tenant for ${event.id}`) : { kind: "delivered" }));
  for (let i = 0; i < 1_000; i += 1) insert(`k${i}`, `e${i}`);
  await relay.start();
  await until("the circuit is open", () => of("CircuitOpened").length === 1);
  await until("a probe came back", () => source.deadLetters().length >= 100);
  broken = false;
  await until("the rest is delivered", () => publisher.delivered.length + source.deadLetters().length === 1_000);
  assert.ok(source.deadLetters().length < 250, `${source.deadLetters().length} dead letters`);
});

test("D6 every success and failure is reported with record, type, target, duration, attempt, reason, time", async () => {
  const { publisher, relay, insert, of } = stage();
  await using _ = relay;
  publisher.failNext(1, retry("once"));
  insert("a", "a1");
  await relay.start();
  await until("reported", () => of("IntentRelayed").length === 1);
  const [failed] = of("IntentRelayFailed");
  const [relayed] = of("IntentRelayed");
  assert.ok(failed?.name === "IntentRelayFailed" && relayed?.name === "IntentRelayed");
  assert.deepEqual(
    [failed.recordId, failed.intentType, failed.target, failed.attempt, failed.reason],
    ["a1", "t", "t", 1, "once"],
  );
  assert.deepEqual([relayed.recordId, relayed.intentType, relayed.target, relayed.attempt], ["a1", "t", "t", 2]);
  assert.ok(relayed.durationMs >= 0 && relayed.timestamp > 0);
});

test("D6 an intent that no route matches is reported and kept", async () => {
  const { source, relay, of } = stage({ types: ["known"] });
  await using _ = relay;
  source.insert({ id: "u1", type: "unknown", key: "a" }, { id: "k1", type: "known", key: "a" });
  await relay.start();
  await until("reported", () => of("RelayMismatch").length > 0);
  const [mismatch] = of("RelayMismatch");
  assert.ok(mismatch?.name === "RelayMismatch");
  assert.deepEqual([mismatch.intentType, mismatch.count], ["unknown", 1]);
  await until("u1 waits alone", () => source.pending().length === 1);
  assert.equal(source.pending()[0]?.id, "u1");
});

test("D2 D6 a relay of some types does not report the others' types; a type that none takes is reported once", async () => {
  const source = memorySource();
  const reported: TechnicalEvent[] = [];
  const only = (type: string) => {
    const relay = createRelay({
      sources: [memorySource({ database: source.database })],
      destinations: { [`out[${type}]`]: memoryPublisher() },
      routes: [{ destination: `out[${type}]`, types: [type] }],
      timing: QUICK,
      instanceName: type,
    });
    relay.onAny((event) => reported.push(event));
    return relay;
  };
  const of = (name: string) => reported.flatMap((event) => (event.name === name ? [event] : []));
  await using a = only("a");
  await using b = only("b");
  source.insert({ id: "a1", type: "a" }, { id: "b1", type: "b" }, { id: "c1", type: "c" }, { id: "c2", type: "c" });
  await a.start();
  await b.start();
  await until("both are delivered", () => source.pending().length === 2);
  await until("c is reported", () =>
    of("RelayMismatch").some((event) => "intentType" in event && event.intentType === "c"),
  );
  const checkedMs = source.database.nowMs();
  await until("it was checked again", () => source.database.nowMs() > checkedMs + 5 * QUICK.unroutedMs);
  assert.deepEqual(
    of("RelayMismatch").map(
      (event) => event.name === "RelayMismatch" && [event.intentType, event.count, event.recordId],
    ),
    [["c", 2, null]],
  );
  await using c = only("c");
  await c.start();
  await until("it is over", () => of("RelayMatched").length === 1 && source.pending().length === 0);
});

test("D6 an event given to the relay of another intent is reported, not sent, and kept as a dead letter", async () => {
  const relayOfA = defineIntentRelay({ type: "a", target: { destination: "out" }, translate: () => ({ body: {} }) });
  const { source, publisher, relay, of } = stage({ ...intentRoute(relayOfA, "out"), types: ["a", "b"] });
  await using _ = relay;
  source.insert({ id: "a1", type: "a" }, { id: "b1", type: "b" });
  await relay.start();
  await until("b1 is dead", () => source.deadLetters().length === 1);
  await publisher.arrived(1);
  assert.deepEqual(ids(publisher.delivered), ["a1"]);
  const [mismatch] = of("RelayMismatch");
  assert.ok(mismatch?.name === "RelayMismatch");
  assert.deepEqual([mismatch.recordId, mismatch.intentType, mismatch.count], ["b1", "b", 1]);
  assert.match(source.deadLetters()[0]?.errors[0]?.reason ?? "", /RELAY_MISMATCH/);
});

test("D1 an intent whose translation throws becomes a dead letter with the reason", async () => {
  const relayOfA = defineIntentRelay({
    type: "a",
    target: { destination: "out" },
    translate: (intent) => ({ body: intent.json<object>() }),
  });
  const { source, publisher, relay } = stage(intentRoute(relayOfA, "out"));
  await using _ = relay;
  source.insert({ id: "a1", type: "a", payload: "no json" }, { id: "a2", type: "a", payload: "{}" });
  await relay.start();
  await until("a1 is dead", () => source.deadLetters().length === 1);
  await publisher.arrived(1);
  assert.equal(publisher.delivered[0]?.payload.toString(), '{"idempotency_key":"a2"}');
  assert.match(source.deadLetters()[0]?.errors[0]?.reason ?? "", /could not translate it: .*JSON/);
});

test("a row that is not a valid event becomes a dead letter with its reason", async () => {
  const { source, publisher, relay, insert } = stage();
  await using _ = relay;
  source.insert({ id: "bad", type: "t", key: "a", unreadable: "the type is null" });
  insert("b", "b1");
  await relay.start();
  await until("dead", () => source.deadLetters().length === 1);
  assert.match(source.deadLetters()[0]?.errors[0]?.reason ?? "", /the type is null/);
  await publisher.arrived(1);
});

test("a drain ends although the only busy lane was left out of the last run", async () => {
  const { publisher, relay, insert } = stage({}, { limits: { inFlightEventsMax: 4 } });
  await using _ = relay;
  let answer = () => {};
  publisher.respond(() => new Promise((resolve) => (answer = () => resolve({ kind: "delivered" }))));
  insert("a", "slow");
  let runs = 0;
  relay.on("RunEnded", () => {
    runs += 1;
  });
  const drained = relay.drain();
  await until("another run has begun", () => runs >= 2);
  answer();
  await drained;
  assert.deepEqual(ids(publisher.delivered), ["slow"]);
});

test("G2 F2 a drain ends only when the events parked behind a retried one are delivered too", async () => {
  const { source, publisher: refusing, relay: before, insert } = stage({ retry: scheduledRetry([100, 60_000]) });
  refusing.respond(() => retry("no"));
  insert("a", "a1", "a2");
  assert.equal((await before.drain()).retrying, 1);
  await before.stop();
  await until("it is due", () => source.holds().every(({ dueAtMs }) => dueAtMs !== null && dueAtMs < Date.now()));
  const publisher = memoryPublisher({ keyOrderInBatch: false });
  let answer: (() => void) | null = null;
  publisher.respond(({ event }) => {
    if (event.id !== "a1") return { kind: "delivered" };
    return new Promise((resolve) => (answer = () => resolve({ kind: "delivered" })));
  });
  // So long that no scheduled poll can find the events.
  const timing = { ...QUICK, pollIntervalMs: 5_000, reviewMs: 60_000 };
  const sources = [{ ...source, pipeline: (spec: PipelineSpec) => slowToAnswer(source.pipeline(spec)) }];
  await using relay = createRelay({ sources, destinations: { out: publisher }, timing });
  const drained = relay.drain();
  await until("a1 is on the wire", () => answer !== null);
  answer!();
  await drained;
  assert.deepEqual(ids(publisher.delivered), ["a1", "a2"]);
});

/** A database that takes longer for a probe than the drain takes between two checks. */
function slowToAnswer(store: QueueStore): QueueStore {
  const probe = async (grants: readonly Grant[]) => {
    const askedMs = performance.now();
    await until("the question has arrived", () => performance.now() - askedMs > 60);
    return await store.probe(grants);
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === "probe") return probe;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("H1 dead letters that block no other event do not brake a lane", async () => {
  const limits = { holdsPerLaneMax: 5, failuresInRowMax: 1_000 };
  const { source, publisher, relay, insert, of } = stage({ onExhausted: "skip" }, { limits, lanes: 1 });
  await using _ = relay;
  publisher.respond(({ event }) => (event.id.startsWith("bad") ? rejected("no") : { kind: "delivered" }));
  for (let i = 0; i < 20; i += 1) insert(i % 2 === 0 ? `k${i}` : null, `bad${i}`);
  await relay.start();
  await until("all are dead", () => source.deadLetters().length === 20);
  insert("k0", "good1");
  await publisher.arrived(1);
  assert.deepEqual(of("LaneBraked"), []);
});

test("H1 a lane with too many blocking events reports that, and reports when it takes new events again", async () => {
  const limits = { holdsPerLaneMax: 5, failuresInRowMax: 1_000 };
  const { source, publisher, relay, insert, of } = stage({}, { limits, lanes: 1 });
  await using _ = relay;
  publisher.respond(({ event }) => (event.id.startsWith("bad") ? rejected("no") : { kind: "delivered" }));
  for (let i = 0; i < 5; i += 1) insert(`k${i}`, `bad${i}`);
  await relay.start();
  await until("the lane is braked", () => of("LaneBraked").length === 1);
  insert("other", "good1");
  publisher.respond(null);
  for (let i = 0; i < 5; i += 1) source.replay(`bad${i}`);
  await until("it is reported", () => of("LaneUnbraked").length === 1);
  await publisher.arrived(6);
  assert.equal(of("LaneBraked").length, 1);
});
