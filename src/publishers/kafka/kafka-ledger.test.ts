import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ConfigResourceTypes, IncrementalAlterConfigOperationTypes } from "@platformatic/kafka";
import { type KafkaServer, startKafka } from "../../../test/servers/kafka.ts";
import { withAdmin } from "../../../test/servers/kafka-admin.ts";
import { readTopic } from "../../../test/servers/kafka-reader.ts";
import { writeTopic } from "../../../test/servers/kafka-writer.ts";
import { until } from "../../../test/servers/until.ts";
import { kafkaSettings } from "./kafka-config.ts";
import { kinds } from "./kafka-fixture.test.ts";
import { kafkaTransactions } from "./kafka-transactions.ts";
import { commit, ledger, open, openService, send, unaborted } from "./transactions-fixture.test.ts";

let kafka: KafkaServer;

before(async () => {
  kafka = await startKafka({ properties: { "log.cleaner.backoff.ms": 50, "log.initial.task.delay.ms": 100 } });
});

after(() => kafka[Symbol.asyncDispose]());

/** Compacts as soon as it can. */
const EAGER = {
  "cleanup.policy": "compact",
  "segment.ms": 100,
  "min.cleanable.dirty.ratio": 0.001,
  "delete.retention.ms": 0,
};

async function configure(topic: string, name: string, value: string): Promise<void> {
  const configs = [{ name, configOperation: IncrementalAlterConfigOperationTypes.SET, value }];
  const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs }];
  await withAdmin(kafka.directBrokers, async (admin) => {
    await admin.incrementalAlterConfigs({ resources, validateOnly: false });
    await until("the topic has its new setting", async () => (await configOf(topic)).get(name) === value);
  });
}

async function configOf(topic: string): Promise<Map<string, string | null | undefined>> {
  const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }];
  const [found] = await withAdmin(kafka.directBrokers, (admin) => admin.describeConfigs({ resources }));
  return new Map(found!.configs.map(({ name, value }) => [name, value]));
}

async function partitionsOf(topic: string): Promise<number> {
  return withAdmin(kafka.directBrokers, async (admin) => {
    const { topics } = await admin.metadata({ topics: [topic], forceUpdate: true });
    return topics.get(topic)!.partitionsCount;
  });
}

test("A2 the ledger is created compacted with a partition for each slot, grows, and never shrinks", async () => {
  await using service = await openService(kafka);
  const { topic } = service.settings.ledger;
  assert.match(topic, /^outbox-relay\.ledger\.service-\d+$/);
  await service.transactions.prepare(3);
  assert.equal((await configOf(topic)).get("cleanup.policy"), "compact");
  assert.equal(await partitionsOf(topic), 3);
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1"));
  await Promise.all([service.transactions.prepare(9), kafkaTransactions(service.settings).prepare(9)]);
  assert.equal(await partitionsOf(topic), 9);
  await service.transactions.prepare(2);
  assert.equal(await partitionsOf(topic), 9);
  const last = await service.fence({ lane: 8, slot: 8 });
  await commit(last, 5n, service.messages("a2"));
  assert.deepEqual([await ledger(lane), await ledger(last)], [[1n], [5n]]);
});

test("A2 a ledger that would forget, or cannot be written to, is refused by name and with the command that mends it", async () => {
  await using service = await openService(kafka);
  const { topic } = service.settings.ledger;
  // As a broker creates a topic by itself: one partition, old records are deleted.
  await writeTopic(kafka.directBrokers, topic, ["somebody was here first"]);
  const mended = [
    [
      "cleanup.policy",
      "compact",
      /cleanup\.policy=delete .* --entity-name \S+ --alter --add-config cleanup.policy=compact/,
    ],
    ["cleanup.policy", "compact,delete", null],
    ["cleanup.policy", "compact", /cleanup\.policy=compact,delete/],
    ["min.insync.replicas", "2", null],
    ["min.insync.replicas", "1", /1 replicas but min\.insync\.replicas=2.* --add-config min\.insync\.replicas=1/],
    ["unclean.leader.election.enable", "true", null],
    ["unclean.leader.election.enable", "false", /unclean\.leader\.election\.enable=true/],
  ] as const;
  for (const [name, value, complaint] of mended) {
    if (complaint !== null) {
      await assert.rejects(service.transactions.prepare(4), { code: "LEDGER_UNFIT", message: complaint });
      await assert.rejects(service.transactions.prepare(4), ({ message }: Error) => message.includes(`"${topic}"`));
    }
    await configure(topic, name, value);
  }
  await service.transactions.prepare(4);
  assert.equal(await partitionsOf(topic), 4);
});

test("a replication factor that the cluster does not have names the setting", async () => {
  await using service = await openService(kafka, { ledger: { replicationFactor: 3 } });
  const complaint = { code: "LEDGER_UNFIT", message: /INVALID_REPLICATION_FACTOR.*ledger\.replicationFactor/ };
  await assert.rejects(service.transactions.prepare(1), complaint);
});

test("A2 a ledger that is deleted meanwhile is noticed before anything is delivered without a note", async () => {
  await using service = await openService(kafka);
  await service.transactions.prepare(1);
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1"));
  await kafka.deleteTopic(service.settings.ledger.topic);
  await assert.rejects(send(lane, 2n, service.messages("a2")), { code: "LEDGER_UNFIT" });
  assert.equal(lane.isSpent, true);
  const heir = await service.fence();
  await assert.rejects(ledger(heir), { code: "LEDGER_UNFIT" });
  await service.transactions.prepare(1);
  assert.deepEqual(await ledger(await service.fence()), []);
  await service.assertVisible("a1");
});

test("A2 a compacted ledger returns the same as before", async () => {
  await using service = await openService(kafka, { ledger: { ringSize: 8 } });
  const { topic } = service.settings.ledger;
  await kafka.createTopic(topic, { partitions: 1, config: EAGER });
  await service.transactions.prepare(1);
  const lane = await service.fence();
  const other = await service.fence({ lane: 1 });
  let batch = 0n;
  const commitMore = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left--) {
      batch += 1n;
      await commit(lane, batch, service.messages("a1"));
      await open(other, batch, service.messages("b1"));
      await (batch % 2n === 0n ? other.commit(unaborted()) : other.abort(unaborted()));
    }
  };
  await commitMore(30);
  await until("the ledger is compacted", async () => {
    await commitMore(1);
    return (await readTopic(kafka.directBrokers, topic, { isolation: "read_uncommitted" })).length < 28;
  });
  const heir = await service.fence();
  assert.deepEqual(
    await ledger(heir),
    Array.from({ length: 8 }, (_, at) => batch - 7n + BigInt(at)),
  );
  assert.deepEqual(await ledger(heir, batch - 2n), [batch - 1n, batch]);
});

test("A2 a ledger whose log no longer begins at 0 is read from where it begins", async () => {
  await using service = await openService(kafka);
  const { topic } = service.settings.ledger;
  await service.transactions.prepare(1);
  const lane = await service.fence();
  for (let batch = 1n; batch <= 20n; batch++) await commit(lane, batch, service.messages("a1"));
  await configure(topic, "cleanup.policy", "compact,delete");
  // Each transaction takes two offsets: twelve of them go.
  await withAdmin(kafka.directBrokers, (admin) =>
    admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: 24n }] }] }),
  );
  const heir = await service.fence();
  assert.deepEqual(await ledger(heir), [13n, 14n, 15n, 16n, 17n, 18n, 19n, 20n]);
  assert.deepEqual(await ledger(heir, 18n), [19n, 20n]);
});

test("a lane's last note is found behind many large ones of databases that share its partition", async () => {
  await using service = await openService(kafka);
  await service.transactions.prepare(1);
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1"));
  await commit(lane, 2n, service.messages("a2"));
  const ids = Array.from({ length: 5_000 }, (_, at) => `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`);
  for (const database of ["one", "two", "three"]) {
    const other = await service.fence({ database });
    for (let batch = 1n; batch <= 20n; batch++) {
      await other.send(service.messages("b1"), { batch, ids }, unaborted());
      await other.commit(unaborted());
    }
  }
  const heir = await service.fence();
  assert.deepEqual(await ledger(heir), [1n, 2n]);
  assert.deepEqual(await ledger(heir, 2n), [2n]);
  assert.deepEqual(await ledger(await service.fence({ database: "new" })), []);
});

test("a lane holds one connection to a broker, and none when it is closed; preparing leaves none behind", async () => {
  await using service = await openService(kafka);
  const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
  await until("nothing else is connected", () => sockets() === 0);
  await service.transactions.prepare(1);
  assert.equal(sockets(), 0);
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1 b1 c1"));
  assert.deepEqual(await ledger(lane), [1n]);
  assert.equal(sockets(), 1);
  await open(lane, 2n, service.messages("a2"));
  await lane.close();
  assert.equal(sockets(), 0);
});

test("A4 while no broker can be reached nothing is begun, no event is blamed, and the lane continues afterwards", async () => {
  await using service = await openService(kafka);
  await service.transactions.prepare(1);
  const lane = await service.fence();
  await commit(lane, 1n, service.messages("a1"));
  await kafka.kill();
  await assert.rejects(service.transactions.prepare(1), {
    code: "DESTINATION_UNREACHABLE",
    message: /127\.0\.0\.1:\d+/,
  });
  await assert.rejects(service.fence(), { code: "DESTINATION_UNREACHABLE" });
  assert.deepEqual(kinds(await send(lane, 2n, service.messages("a2 b2"))), ["retry destination", "retry destination"]);
  await lane.abort(unaborted());
  assert.equal(lane.isSpent, false);
  await kafka.restart();
  await commit(lane, 2n, service.messages("a2 b2"));
  await service.assertVisible("a1", "a2", "b2");
  assert.deepEqual(await ledger(lane), [1n, 2n]);
});

test("H1 A20 a broker that stands still gives no answer in time, and nothing is said of TLS or a login", async () => {
  await using service = await openService(kafka, { requestTimeoutMs: 500, connectTimeoutMs: 500 });
  await service.transactions.prepare(1);
  await kafka.pause();
  try {
    const silent = { code: "DESTINATION_UNREACHABLE", message: /: no answer in time: check brokers and the network\./ };
    await assert.rejects(service.transactions.prepare(1), silent);
    await assert.rejects(service.fence(), silent);
  } finally {
    kafka.resume();
  }
});

test("a transaction timeout above the broker's limit names the setting", async () => {
  const settings = kafkaSettings({ brokers: [kafka.brokers], service: "patient", transactionTimeoutMs: 10_000_000 });
  const complaint = { code: "CONFIG_INVALID", message: /transactionTimeoutMs/ };
  await assert.rejects(kafkaTransactions(settings).prepare(1), complaint);
});
