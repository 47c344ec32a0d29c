import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../test/servers/until.ts";
import type { Message } from "../core/event.ts";
import { rejected, retry } from "../core/outcome.ts";
import { scheduledRetry } from "../core/retry-policy.ts";
import type { TechnicalEvent } from "../ports/technical-events.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { TransactionBroker } from "../publishers/memory/memory-transaction-broker.ts";
import { memorySource } from "../sources/memory/memory-source.ts";
import { createRelay, type RelayDestination, type RelayOptions } from "./relay.ts";

const QUICK = {
  leaseMs: 2_000,
  leaseMarginMs: 400,
  pollIntervalMs: 20,
  publishTimeoutMs: 100,
  balanceMs: 50,
  backoffInitialMs: 10,
  backoffMaxMs: 50,
  circuitInitialMs: 20,
  circuitMaxMs: 100,
};

function stage(options: Partial<RelayOptions> = {}, ofDestination: Omit<RelayDestination, "publisher"> = {}) {
  const source = memorySource();
  const publisher = memoryPublisher({ transactions: true });
  const reported: TechnicalEvent[] = [];
  const relayOf = (more: Partial<RelayOptions> = {}) => {
    const relay = createRelay({
      sources: [source],
      destinations: { out: { publisher, ...ofDestination } },
      routes: [{ destination: "out", retry: scheduledRetry([20, 20]) }],
      timing: QUICK,
      lanes: 2,
      ...options,
      ...more,
    });
    relay.onAny((event) => reported.push(event));
    return relay;
  };
  const insert = (...names: string[]) =>
    source.insert(...names.map((id) => ({ id, type: "t", key: id[0]!, payload: id })));
  const of = (name: string) => reported.filter((event) => event.name === name);
  return {
    source,
    publisher,
    reported,
    relayOf,
    insert,
    of,
    ids: () => publisher.delivered.map(({ event }) => event.id),
  };
}

const ALL = ["a1", "a2", "a3", "b1", "b2", "c1"];

test("A2 every event is delivered once, in transactions", async () => {
  const { source, relayOf, insert, ids } = stage();
  insert(...ALL);
  await using relay = relayOf();
  await relay.drain();
  assert.deepEqual(ids().sort(), ALL);
  assert.equal(source.pending().length, 0);
});

test("A2 a transaction has no more events than its destination's transactionSize", async () => {
  const { publisher, relayOf, insert, ids } = stage({ lanes: 1 }, { limits: { transactionSize: 2 } });
  const sizes = [0];
  publisher.respond(() => {
    sizes[sizes.length - 1]! += 1;
    return { kind: "delivered" };
  });
  publisher.respondToTransactions((asked) => {
    if (asked === "commit") sizes.push(0);
    return "answer";
  });
  insert("a1", "b1", "c1", "d1", "e1");
  await using relay = relayOf();
  await relay.drain();
  assert.deepEqual(ids().sort(), ["a1", "b1", "c1", "d1", "e1"]);
  assert.deepEqual(sizes, [2, 2, 1, 0]);
});

for (const step of ["send", "commit"] as const) {
  for (const fate of ["hang", "unanswered"] as const) {
    test(`A2 a ${step} whose ${fate === "hang" ? "request" : "answer"} is lost makes no duplicate and no loss`, async () => {
      const { source, publisher, relayOf, insert, ids, of } = stage();
      let left = 3;
      publisher.respondToTransactions((asked) => (asked === step && left-- > 0 ? fate : "answer"));
      insert(...ALL);
      await using relay = relayOf();
      await relay.drain();
      assert.deepEqual(ids().sort(), ALL);
      assert.equal(source.pending().length, 0);
      assert.ok(of("LaneFailed").length > 0, "the lane was taken over again");
      assert.equal(of("LaneHealed").length > 0, step === "commit" && fate === "unanswered");
    });
  }
}

test("A2 an event that is refused takes its key out of the transaction, the others are delivered", async () => {
  const { source, publisher, relayOf, insert, ids } = stage();
  publisher.respond(({ event }) => (event.id === "a2" ? rejected("too large") : { kind: "delivered" }));
  insert(...ALL);
  await using relay = relayOf();
  const report = await relay.drain();
  assert.equal(report.deadLetters, 1);
  assert.deepEqual(ids().sort(), ["a1", "b1", "b2", "c1"]);
  assert.equal(source.deadLetters()[0]?.event.id, "a2");
});

test("A4 an outage spends no attempt, and the backlog is delivered once when it is over", async () => {
  const { publisher, relayOf, insert, ids, of } = stage();
  publisher.down("away");
  await using relay = relayOf();
  insert(...ALL);
  await relay.start();
  await until("the circuit is open", () => of("CircuitOpened").length > 0);
  assert.deepEqual((await relay.drain()).unreachable, ["out"]);
  publisher.up();
  await until("all is there", () => ids().length === ALL.length);
  assert.deepEqual(ids().sort(), ALL);
  assert.ok(of("IntentDeadLettered").length === 0);
});

test("A2 a stop in good order and a start on the same ledger deliver nothing twice", async () => {
  const broker = new TransactionBroker<Message>();
  const destinations = () => ({ out: memoryPublisher({ transactions: broker }) });
  const { relayOf, insert } = stage();
  const seen: string[] = [];
  broker.onVisible((messages) => seen.push(...messages.map(({ event }) => event.id)));
  insert("a1", "b1");
  const first = relayOf({ destinations: destinations() });
  await first.drain();
  await first.stop();
  insert("a2", "b2");
  await using second = relayOf({ destinations: destinations() });
  await second.drain();
  assert.deepEqual(seen.sort(), ["a1", "a2", "b1", "b2"]);
});

test("A2 a lane whose ledger was lost halts, reports it, and continues when an operator adopts it", async () => {
  const { source, relayOf, insert } = stage({ lanes: 1 });
  insert("a1");
  const first = relayOf();
  await first.drain();
  await first.stop();
  const fresh = memoryPublisher({ transactions: true });
  insert("a2");
  const reported: TechnicalEvent[] = [];
  await using second = createRelay({
    sources: [source],
    destinations: { out: fresh },
    routes: [{ destination: "out" }],
    timing: QUICK,
    lanes: 1,
  });
  second.onAny((event) => reported.push(event));
  const report = await second.drain();
  assert.deepEqual(report.broken, ["memory->out"]);
  const reason = reported.find((event) => event.name === "SourceBroken");
  assert.ok(reason?.name === "SourceBroken" && reason.code === "LEDGER_GAP" && /ledger is empty/.test(reason.reason));
  assert.equal(fresh.delivered.length, 0);
  source.adopt();
  await until("the lane delivers again", () => fresh.delivered.length === 1);
});

test("A2 a failure of one topic holds back only the events of that topic", async () => {
  const { publisher, relayOf, insert, ids } = stage();
  let isUp = false;
  publisher.respond(({ event }) =>
    !isUp && event.key === "a" ? retry("unknown topic", { scope: "topic" }) : { kind: "delivered" },
  );
  insert(...ALL);
  await using relay = relayOf();
  await relay.start();
  isUp = true;
  await until("all is there", () => ids().length === ALL.length);
  assert.deepEqual(ids().sort(), ALL);
});

/** An idle instance owns both lanes as long as its lease lasts. */
async function letAnotherOwnTheLanes(source: ReturnType<typeof memorySource>, leaseMs: number): Promise<void> {
  const id = "00000000-0000-4000-8000-000000000001";
  const store = source.pipeline({
    name: "memory->out",
    types: null,
    lanes: 2,
    attemptsMax: 9,
    payloadBytesMax: 99,
    headersMax: 9,
  });
  await store.prepare();
  await source.membership.join({ id, name: "another", leaseMs, pipelines: ["memory->out"] });
  await store.takeOver(id, [0, 1]);
}

test("G2 a drain waits for the lease of an instance that died, and delivers what it left", async () => {
  const { source, relayOf, insert, ids } = stage({ timing: { ...QUICK, leaseMs: 600, leaseMarginMs: 100 } });
  await letAnotherOwnTheLanes(source, 600);
  insert(...ALL);
  await using relay = relayOf();
  const report = await relay.drain();
  assert.equal(report.elsewhere, 0);
  assert.deepEqual(ids().sort(), ALL);
});

test("G2 a drain reports the pending events in lanes of another living instance", async () => {
  const { source, relayOf, insert } = stage({ timing: { ...QUICK, leaseMs: 600, leaseMarginMs: 100 } });
  await letAnotherOwnTheLanes(source, 60_000);
  insert(...ALL);
  await using relay = relayOf();
  assert.equal((await relay.drain()).elsewhere, ALL.length);
});

test("H1 a destination that is slow for the publish timeout makes progress, even with events that it refuses", async () => {
  const publisher = memoryPublisher({ transactions: true, latencyMs: 45 });
  const { source, relayOf, insert, of } = stage({ destinations: { out: publisher }, lanes: 1 });
  publisher.respond(({ event }) => (/^[b-d]2$/.test(event.id) ? rejected("too large") : { kind: "delivered" }));
  insert(...["a", "b", "c", "d", "e"].flatMap((key) => [`${key}1`, `${key}2`, `${key}3`]));
  await using relay = relayOf();
  const report = await relay.drain();
  assert.deepEqual([report.deadLetters, source.deadLetters().length], [3, 3]);
  assert.deepEqual(publisher.delivered.map(({ event }) => event.id).sort(), [
    ...["a1", "a2", "a3", "b1", "c1", "d1", "e1", "e2", "e3"],
  ]);
  assert.deepEqual(of("LaneFailed"), []);
});

test("H1 a stop leaves no row claimed and no attempt counted, even if the destination never answers", async () => {
  const source = memorySource({ durableClaims: true });
  const { publisher, relayOf, of } = stage({ sources: [source], lanes: 2 });
  for (const id of ALL) source.insert({ id, type: "t", key: id[0]!, payload: id });
  publisher.respondToTransactions((asked) => (asked === "send" ? "hang" : "answer"));
  const relay = relayOf({ timing: { ...QUICK, shutdownMs: 200 } });

  await relay.start();
  await until("a lane was voided", () => of("LaneFailed").length > 0);
  await relay.stop();
  assert.deepEqual(
    source.pending().map(({ state, attempts }) => [state, attempts]),
    ALL.map(() => ["PENDING", 0]),
  );
});
