import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { type KafkaServer, startKafka } from "../../../test/servers/kafka.ts";
import { kafkaClassPath } from "../../../test/servers/kafka-binaries.ts";
import { headerText, type KafkaRecord, readTopic } from "../../../test/servers/kafka-reader.ts";
import type { OutboxEvent } from "../../core/event.ts";
import type { Publisher } from "../../ports/publisher.ts";
import { messageOf } from "../../routing/message.ts";
import { deliver, kinds, message, publish, publishersOn, shown } from "./kafka-fixture.test.ts";

let kafka: KafkaServer;
let publisher: Publisher;
const { open, closeAll, idsIn } = publishersOn(() => kafka);

before(async () => {
  kafka = await startKafka();
  publisher = open();
});

after(async () => {
  await closeAll();
  await kafka[Symbol.asyncDispose]();
});

test("A16 an event arrives as topic, key, payload bytes and three headers, whatever its text", async () => {
  const event: OutboxEvent = {
    id: "6f1c9a52-7d0e-4b3e-9f6e-000000000001",
    type: "shop.order-placed",
    key: "Bestellung №1 🛒",
    payload: Buffer.from('{"n": 9007199254740993, "x": 1.0, "small": 1e-400, "name": "Zoë\\u0000 漢字"}\n'),
    headers: { tenant: "Zürich\r\n漢字" },
    correlationId: "c-1",
    createdAt: "2026-01-02T03:04:05.678901Z",
  };
  const startedMs = Date.now();
  await deliver(publisher, [messageOf({ destination: "kafka" }, event)]);
  const [record, ...more] = await readTopic(kafka.directBrokers, event.type);
  assert.deepEqual([record?.key?.toString(), more.length], [event.key, 0]);
  assert.equal(record?.value?.toString("hex"), event.payload.toString("hex"));
  assert.deepEqual(Object.fromEntries(record!.headers.map(([name, value]) => [name, value?.toString()])), {
    tenant: "Zürich\r\n漢字",
    "event-id": event.id,
    "correlation-id": "c-1",
    "created-at": "2026-01-02T03:04:05.678Z",
  });
  assert.ok(Math.abs(record!.timestampMs - startedMs) < 60_000, "the record's time is that of sending");
});

test("B6 a missing key and an empty one, an empty payload and every byte stay what they are", async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  await deliver(publisher, [
    message("-1", { topic: "edges", payload: bytes }),
    message("a1", { topic: "edges", key: "", payload: Buffer.alloc(0) }),
  ]);
  const records = await readTopic(kafka.directBrokers, "edges");
  const [unkeyed, empty] = ["-1", "a1"].map((id) => records.find((it) => headerText(it, "event-id") === id));
  assert.deepEqual([unkeyed?.key, unkeyed?.value?.toString("hex")], [null, bytes.toString("hex")]);
  assert.deepEqual([empty?.key?.length, empty?.value?.length], [0, 0]);
});

for (const compression of ["gzip", "lz4", "zstd", "snappy"] as const) {
  test(`another reader understands what was compressed with ${compression}`, async () => {
    const topic = `packed-${compression}`;
    const batch = Array.from({ length: 50 }, (_, at) => message(`a${at}`, { topic, payload: Buffer.alloc(2_000, at) }));
    await deliver(open({ compression }), batch);
    const records = await readTopic(kafka.directBrokers, topic);
    assert.deepEqual(
      records.map(({ value }) => value?.toString("hex")),
      batch.map(({ payload }) => payload.toString("hex")),
    );
  });
}

test("A3 every key goes to the partition that a Java producer picks, and events without a key are spread", async () => {
  await kafka.createTopic("by-java", { partitions: 7 });
  await kafka.createTopic("by-us", { partitions: 7 });
  const keys = ["", "ü", "漢字", "🛒", "é".repeat(200), "a".repeat(1_000)];
  for (let at = 0; keys.length < 600; at++)
    keys.push(`order-${at}`, "x".repeat(at % 90) + at, `Größe ${at * 7_919} 漢`);
  await produceByJava("by-java", keys);
  await deliver(
    publisher,
    keys.map((key, at) => message(`k${at}`, { topic: "by-us", key })),
  );
  const ours = partitionsByKey(await readTopic(kafka.directBrokers, "by-us"));
  assert.deepEqual(ours, partitionsByKey(await readTopic(kafka.directBrokers, "by-java")));
  assert.ok(ours.size >= 500);

  for (let round = 0; round < 7; round++) await deliver(publisher, [message("-1", { topic: "by-us" })]);
  const unkeyed = (await readTopic(kafka.directBrokers, "by-us")).filter(({ key }) => key === null);
  assert.equal(new Set(unkeyed.map(({ partition }) => partition)).size, 7);
});

async function produceByJava(topic: string, keys: readonly string[]): Promise<void> {
  const tool = ["-cp", await kafkaClassPath(), "org.apache.kafka.tools.ConsoleProducer"];
  const reader = ["--property", "parse.key=true"];
  const java = spawn("java", [...tool, "--bootstrap-server", kafka.directBrokers, "--topic", topic, ...reader], {
    stdio: ["pipe", "ignore", "pipe"],
  });
  let complaints = "";
  java.stderr.on("data", (text) => {
    complaints += text;
  });
  java.stdin.end(keys.map((key) => `${key}\tv\n`).join(""));
  const [code] = await once(java, "close");
  assert.equal(code, 0, complaints.slice(0, 500));
}

function partitionsByKey(records: readonly KafkaRecord[]): Map<string, number> {
  const pairs = records.map(({ key, partition }) => [String(key), partition] as const);
  return new Map(pairs.sort(([left], [right]) => (left < right ? -1 : 1)));
}

test("C5 one byte too many is one too many: the broker is the judge, and it judges each event alone", async () => {
  await kafka.createTopic("small", { config: { "max.message.bytes": 10_000 } });
  const sized = (id: string, bytes: number) => message(id, { topic: "small", payload: Buffer.alloc(bytes, 1) });
  const fits = async (bytes: number) => kinds(await publish(publisher, [sized("x1", bytes)]))[0] === "delivered";
  let [least, most] = [9_000, 10_000];
  while (most - least > 1) {
    const middle = Math.floor((least + most) / 2);
    if (await fits(middle)) least = middle;
    else most = middle;
  }
  const outcomes = await publish(publisher, [sized("a1", 9), sized("b1", least), sized("c1", most), sized("d1", 9)]);
  assert.deepEqual(kinds(outcomes), ["delivered", "delivered", "rejected event", "delivered"]);
  assert.match(shown(outcomes)[2]!, /topic "small": MESSAGE_TOO_LARGE \(10\)/);
  assert.match(await idsIn("small"), /(?<!\d)a1 b1 d1$/);
});

test("A3 more than a partition takes at once is sent in parts, in order and once, however small the topic's limit", async () => {
  await kafka.createTopic("narrow", { config: { "max.message.bytes": 60_000 } });
  for (const [topic, size, count] of [
    ["wide", 100_000, 30],
    ["narrow", 3_000, 200],
  ] as const) {
    const batch = Array.from({ length: count }, (_, at) =>
      message(`a${at}`, { topic, payload: Buffer.alloc(size, 1) }),
    );
    await deliver(publisher, batch);
    assert.equal(await idsIn(topic), batch.map(({ event }) => event.id).join(" "));
  }
});

test("C5 F2 a partition that refuses leaves the other partitions of the request alone, and nothing arrives twice", async () => {
  await kafka.createTopic("partial", { partitions: 4, config: { "max.message.bytes": 20_000 } });
  const keys = "abcdefgh".split("");
  const batch = keys.flatMap((key) => [1, 2, 3].map((n) => message(`${key}${n}`, { topic: "partial" })));
  batch[4] = message("b2", { topic: "partial", payload: Buffer.alloc(30_000) });
  const outcomes = await publish(publisher, batch);
  const expected = batch.map(({ event }) => ({ b2: "rejected event", b3: "skipped" })[event.id] ?? "delivered");
  assert.deepEqual(kinds(outcomes), expected);
  const records = await readTopic(kafka.directBrokers, "partial");
  for (const key of keys) {
    const ids = records.filter((it) => String(it.key) === key).map((it) => headerText(it, "event-id"));
    assert.equal(ids.join(" "), key === "b" ? "b1" : `${key}1 ${key}2 ${key}3`);
  }
});

test("C5 a compacted topic refuses what has no key, event by event", async () => {
  await kafka.createTopic("compact", { config: { "cleanup.policy": "compact" } });
  const batch = ["a1", "-1", "a2", "-2", "b1"].map((id) => message(id, { topic: "compact" }));
  const outcomes = await publish(publisher, batch);
  assert.deepEqual(kinds(outcomes), ["delivered", "rejected event", "delivered", "rejected event", "delivered"]);
  assert.match(shown(outcomes)[1]!, /topic "compact": INVALID_RECORD \(87\).*key/i);
  assert.equal(await idsIn("compact"), "a1 a2 b1");
});

test("G2 F2 an unknown topic fails as a topic, keeps later events of its keys back and harms no other", async () => {
  const strict = open({ createTopics: false });
  const batch = [
    message("a1", { topic: "present" }),
    message("a2", { topic: "absent" }),
    message("a3", { topic: "present" }),
    message("b1", { topic: "present" }),
    message("b2", { topic: "present" }),
    message("-1", { topic: "absent" }),
  ];
  await kafka.createTopic("present", { partitions: 2 });
  const outcomes = await publish(strict, batch);
  assert.deepEqual(kinds(outcomes), ["delivered", "retry topic", "skipped", "delivered", "delivered", "retry topic"]);
  assert.match(shown(outcomes)[1]!, /topic "absent": UNKNOWN_TOPIC_OR_PARTITION \(3\): .*createTopics/);
  await kafka.createTopic("absent");
  await deliver(strict, [batch[1]!, batch[2]!, batch[5]!]);
  const records = await readTopic(kafka.directBrokers, "present");
  const ofA = records.filter((it) => String(it.key) === "a").map((it) => headerText(it, "event-id"));
  assert.deepEqual([ofA, await idsIn("absent")], [["a1", "a3"], "a2 -1"]);
});

test("G2 a topic is created by the broker, or by the relay as configured", async () => {
  await deliver(publisher, [message("a1", { topic: "made-by-broker" })]);
  await deliver(open({ createTopics: true }), [message("a1", { topic: "made-by-default" })]);
  await deliver(
    open({ createTopics: { partitions: 5, replicationFactor: 1 } }),
    Array.from({ length: 40 }, (_, at) => message(`a${at}`, { topic: "made-with-five", key: `k${at}` })),
  );
  const records = await readTopic(kafka.directBrokers, "made-with-five");
  assert.equal(new Set(records.map(({ partition }) => partition)).size, 5);
  const refused = await publish(open({ createTopics: { partitions: 1, replicationFactor: 9 } }), [
    message("a1", { topic: "made-of-nine" }),
  ]);
  assert.match(shown(refused)[0]!, /^retry topic: topic "made-of-nine": INVALID_REPLICATION_FACTOR \(38\)/);
});

test("H1 partitions that are added to a topic are used within 30 seconds", async (t) => {
  await kafka.createTopic("growing");
  const send = (round: string) =>
    deliver(
      publisher,
      Array.from({ length: 40 }, (_, at) => message(`${round}${at}`, { topic: "growing", key: `k${at}` })),
    );
  await send("a");
  await kafka.addPartitions("growing", 4);
  const now = performance.now.bind(performance);
  t.mock.method(performance, "now", () => now() + 30_000);
  await send("b");
  const records = await readTopic(kafka.directBrokers, "growing");
  assert.deepEqual([records.length, new Set(records.map(({ partition }) => partition)).size], [80, 4]);
});

test("G2 an illegal topic name is refused without a broker", async () => {
  const nowhere = open({ brokers: ["127.0.0.1:1"] });
  const topics = ["", ".", "..", "a b", "ü", "x".repeat(250)];
  const outcomes = await publish(
    nowhere,
    topics.map((topic, at) => message(`a${at}`, { topic, key: `${at}` })),
  );
  assert.deepEqual(kinds(outcomes), ["rejected event", ...Array(5).fill("skipped")]);
  const apart = await publish(
    nowhere,
    topics.map((topic) => message("-1", { topic })),
  );
  assert.deepEqual(kinds(apart), Array(6).fill("rejected event"));
});

test("more publishes at a time than links all get through, and none mixes up the bytes of another", async () => {
  const payloadOf = (n: number, at: number) => Buffer.from(`${n}-${at} `.repeat(500));
  const publishes = Array.from({ length: 40 }, (_, n) =>
    deliver(
      publisher,
      Array.from({ length: 10 }, (_, at) =>
        message(`p${at}`, { topic: "crowd", key: `${n}`, payload: payloadOf(n, at) }),
      ),
    ),
  );
  await Promise.all(publishes);
  const records = await readTopic(kafka.directBrokers, "crowd");
  for (let n = 0; n < 40; n++) {
    const values = records.filter((it) => String(it.key) === `${n}`).map(({ value }) => String(value));
    assert.deepEqual(
      values,
      Array.from({ length: 10 }, (_, at) => String(payloadOf(n, at))),
    );
  }
});
