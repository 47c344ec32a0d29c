import assert from "node:assert/strict";
import { test } from "node:test";
import { headerText, readTopic } from "../../../test/servers/kafka-reader.ts";
import { proxiedKafka } from "../../../test/servers/proxied-kafka.ts";
import { until } from "../../../test/servers/until.ts";
import { destroyClient } from "./kafka-client.ts";
import { kinds, message, shown } from "./kafka-fixture.test.ts";
import { TransactionCoordinator } from "./transaction-coordinator.ts";
import { accessFor, commit, ledger, noteOf, open, openService, send, unaborted } from "./transactions-fixture.test.ts";

/** The names of the requests of transactions, in their order. */
let requests: string[] = [];

const stand = proxiedKafka({
  properties: {
    "auto.create.topics.enable": false,
    // How often the broker looks for transactions that are too old.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
  },
  decide: ({ name }) => {
    if (name !== null) requests.push(name);
    return { kind: "pass" };
  },
});

test("an id that was used before gets a higher epoch each time it is asked for", async () => {
  await using service = await openService(stand.kafka);
  const access = await accessFor(service.settings);
  const coordinator = new TransactionCoordinator(access, `${service.settings.service}.epochs`);
  const stamps = [await coordinator.init(), await coordinator.init(), await coordinator.init()];
  await destroyClient(access.client);
  assert.equal(new Set(stamps.map(({ producerId }) => producerId)).size, 1);
  const [first] = stamps;
  assert.deepEqual(
    stamps.map(({ producerEpoch }) => producerEpoch - first!.producerEpoch),
    [0, 1, 2],
  );
});

test("a transaction of thousands of events to several topics and partitions takes three requests", async () => {
  await using service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  await stand.kafka.createTopic(`${service.topic}.more`, { partitions: 4 });
  const batch = Array.from({ length: 5_000 }, (_, at) =>
    message(`k${at % 997}-${at}`, { topic: at % 2 ? service.topic : `${service.topic}.more`, key: `k${at % 997}` }),
  );
  const lane = await service.fence();
  requests = [];
  await commit(lane, 1n, batch);
  assert.deepEqual(requests, ["AddPartitionsToTxn", "Produce", "EndTxn"]);
  assert.deepEqual((await lane.lastCommitted(0n, unaborted()))[0]?.ids, noteOf(1n, batch).ids);
});

test("H1 partitions that are added to a topic are used within 30 seconds in transactions too", async (t) => {
  await using service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  const topic = `${service.topic}.growing`;
  await stand.kafka.createTopic(topic);
  const batchOf = (round: string) =>
    Array.from({ length: 40 }, (_, at) => message(`${round}${at}`, { topic, key: `k${at}` }));
  const lane = await service.fence();
  await commit(lane, 1n, batchOf("a"));
  await stand.kafka.addPartitions(topic, 4);
  const now = performance.now.bind(performance);
  t.mock.method(performance, "now", () => now() + 30_000);
  await commit(lane, 2n, batchOf("b"));
  t.mock.restoreAll();
  await until("the new partitions are used", async () => {
    const records = await readTopic(stand.kafka.directBrokers, topic);
    return records.length === 80 && new Set(records.map(({ partition }) => partition)).size === 4;
  });
});

test("answers of a busy coordinator do not spend the lane", async () => {
  await using service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  const lane = await service.fence();
  requests = [];
  for (let number = 1; number <= 25; number++) {
    await commit(lane, BigInt(number), service.messages(`a${number} b${number}`));
    assert.equal(lane.isSpent, false);
  }
  assert.equal(requests.filter((name) => name === "EndTxn").length, 25);
  assert.ok(requests.filter((name) => name === "AddPartitionsToTxn").length > 25, "the coordinator was never busy");
});

test("A3 what is too much for one record batch is split, and stays in order", async () => {
  await using service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  const payload = Buffer.alloc(100_000, "x");
  const batch = Array.from({ length: 40 }, (_, at) => message(`a${at}`, { topic: service.topic, payload }));
  const lane = await service.fence();
  requests = [];
  await commit(lane, 1n, batch);
  assert.equal(requests.filter((name) => name === "Produce").length, 5);
  await until("all is visible", async () => (await service.visible()).length === 40);
  assert.deepEqual(await service.visible(), noteOf(1n, batch).ids);
});

test("a topic's smaller limit is learned from its refusals, until the one record that is too large is named", async () => {
  await using service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  const topic = `${service.topic}.small`;
  await stand.kafka.createTopic(topic, { config: { "max.message.bytes": 10_000 } });
  const batch = Array.from({ length: 12 }, (_, at) => message(`a${at}`, { topic, payload: Buffer.alloc(3_000) }));
  const large = message("a99", { topic, payload: Buffer.alloc(20_000) });
  const sizes = new Set<string>();
  let left = [...batch.slice(0, 6), large, ...batch.slice(6)];
  for (let attempt = 0; left.length > 12 && attempt < 10; attempt++) {
    const lane = await service.fence();
    const outcomes = await send(lane, 1n, left);
    for (const text of kinds(outcomes)) sizes.add(text);
    await lane.abort(unaborted());
    assert.equal(lane.isSpent, true);
    await lane.close();
    left = left.filter((_, index) => outcomes[index]?.kind !== "rejected");
  }
  assert.deepEqual([...sizes].sort(), ["rejected event", "skipped"]);
  assert.deepEqual(left, batch);
  const lane = await service.fence();
  await commit(lane, 1n, left);
  const seen = async () =>
    (await readTopic(stand.kafka.directBrokers, topic)).map((record) => headerText(record, "event-id"));
  await until("all is visible", async () => (await seen()).length === 12);
  assert.deepEqual(await seen(), noteOf(1n, batch).ids);
});

test("the broker names the record that it refuses, and nothing else is blamed", async () => {
  await using service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  const topic = `${service.topic}.compacted`;
  await stand.kafka.createTopic(topic, { config: { "cleanup.policy": "compact" } });
  const batch = [message("a1", { topic }), message("-1", { topic }), message("a2", { topic })];
  const lane = await service.fence();
  const outcomes = await send(lane, 1n, batch);
  assert.deepEqual(kinds(outcomes), ["skipped", "rejected event", "skipped"]);
  assert.match(shown(outcomes)[1]!, /compacted/i);
  await lane.abort(unaborted());
});

test("C5 a fault that is found before sending begins no transaction and leaves the lane unchanged", async () => {
  await using service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  const lane = await service.fence();
  requests = [];
  const good = message("a1", { topic: service.topic });
  const bad = [
    message("b1", { topic: "no/topic" }),
    message("b2", { topic: service.topic, headers: { half: "\ud800" } }),
    message("b3", { topic: service.settings.ledger.topic }),
    message("b4", { topic: service.topic, payload: Buffer.alloc(100 * 1024 * 1024) }),
    message("b5", { topic: "nobody-made-this-one" }),
  ];
  for (const [index, one] of bad.entries()) {
    const outcomes = await send(lane, 1n, [good, one]);
    assert.deepEqual(kinds(outcomes), ["skipped", index === 4 ? "retry topic" : "rejected event"]);
    await lane.abort(unaborted());
    assert.equal(lane.isSpent, false);
    await assert.rejects(lane.commit(unaborted()));
  }
  assert.deepEqual(requests, []);
  await commit(lane, 1n, [good]);
  await service.assertVisible("a1");
});

test("a topic that vanished since it was looked up is refused before the transaction begins", async () => {
  await using service = await openService(stand.kafka);
  await service.transactions.prepare(1);
  const topic = `${service.topic}.vanishing`;
  await stand.kafka.createTopic(topic);
  const lane = await service.fence();
  await commit(lane, 1n, [message("a1", { topic })]);
  await stand.kafka.deleteTopic(topic);
  const outcomes = await send(lane, 2n, [message("a2", { topic }), message("b2", { topic: service.topic })]);
  assert.deepEqual(kinds(outcomes), ["retry topic", "skipped"]);
  await lane.abort(unaborted());
  assert.equal(lane.isSpent, false);
  await commit(lane, 2n, service.messages("b2"));
  assert.deepEqual(await ledger(lane, 1n), [2n]);
});

test("A2 a transaction that is older than its timeout is aborted by the broker and cannot be committed", async () => {
  await using service = await openService(stand.kafka, { transactionTimeoutMs: 500 });
  await service.transactions.prepare(1);
  const slow = await service.fence();
  await open(slow, 1n, service.messages("a1"));
  // Readers stand still at the open transaction until the broker has ended it.
  const other = await service.fence({ lane: 1 });
  await commit(other, 1n, service.messages("a2"));
  await service.assertVisible("a2");
  await assert.rejects(slow.commit(unaborted()), /PRODUCER_FENCED|INVALID_PRODUCER_EPOCH|INVALID_TXN_STATE/);
  assert.equal(slow.isSpent, true);
  const heir = await service.fence();
  assert.deepEqual(await ledger(heir), []);
});

test("a broker that hangs ends a call by itself, without a signal, and spends the lane", async () => {
  await using service = await openService(stand.kafka, { requestTimeoutMs: 300 });
  await service.transactions.prepare(1);
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1"));
  await stand.kafka.pause();
  try {
    await assert.rejects(send(lane, 2n, service.messages("a2")), /no answer in time/);
    await assert.rejects(service.fence(), { code: "DESTINATION_UNREACHABLE" });
  } finally {
    stand.kafka.resume();
  }
  assert.equal(lane.isSpent, true);
  const heir = await service.fence();
  assert.deepEqual(await ledger(heir), [1n]);
});
