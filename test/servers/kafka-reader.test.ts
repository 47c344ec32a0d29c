import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Producer, type ProducerOptions } from "@platformatic/kafka";
import { type KafkaServer, startKafka } from "./kafka.ts";
import { followTopic, headerText, readTopic, readTopics } from "./kafka-reader.ts";

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));

describe("the reader that judges", () => {
  let kafka: KafkaServer;
  before(async () => {
    kafka = await startKafka();
  });
  after(() => kafka[Symbol.asyncDispose]());

  test("gives back keys, values and headers byte by byte, and tells nothing from empty", async () => {
    await kafka.createTopic("bytes");
    await withProducer(kafka, {}, (producer) =>
      producer.send({
        messages: [
          {
            topic: "bytes",
            key: everyByte,
            value: everyByte,
            headers: new Map([
              [Buffer.from("a=,b é"), everyByte],
              [Buffer.from("empty"), Buffer.alloc(0)],
            ]),
          },
          { topic: "bytes", key: Buffer.alloc(0), value: Buffer.alloc(0) },
          { topic: "bytes" },
        ],
      }),
    );
    const [first, second, third] = await readTopic(kafka.brokers, "bytes");
    assert.deepEqual(first?.key, everyByte);
    assert.deepEqual(first?.value, everyByte);
    assert.deepEqual(first?.headers, [
      ["a=,b é", everyByte],
      ["empty", Buffer.alloc(0)],
    ]);
    assert.equal(first && headerText(first, "empty"), "");
    assert.deepEqual([second?.key, second?.value], [Buffer.alloc(0), Buffer.alloc(0)]);
    assert.deepEqual([third?.key, third?.value, third?.offset], [null, null, 2]);
  });

  test("leaves out what was aborted or is still open, unless it is told to read everything", async () => {
    await kafka.createTopic("fate");
    const write = (value: string) => ({ messages: [{ topic: "fate", value: Buffer.from(value) }] });
    const transactional = { transactionalId: "fate", producerId: -1n, producerEpoch: -1, timeout: 60_000 };
    await withProducer(kafka, transactional, async (producer) => {
      for (const end of ["commit", "abort", "commit"] as const) {
        const transaction = await producer.beginTransaction({});
        await transaction.send(write(end));
        await transaction[end]();
      }
      const open = await producer.beginTransaction({});
      await open.send(write("open"));
      assert.deepEqual(await values("read_committed"), ["commit", "commit"]);
      assert.deepEqual(await values("read_uncommitted"), ["commit", "abort", "commit", "open"]);
      await open.abort();
    });

    async function values(isolation: "read_committed" | "read_uncommitted"): Promise<string[]> {
      return (await readTopic(kafka.brokers, "fate", { isolation })).map(({ value }) => String(value));
    }
  });

  test("reads one partition or all, of one topic or of several", async () => {
    await kafka.createTopic("left", { partitions: 3 });
    await kafka.createTopic("right");
    await withProducer(kafka, {}, async (producer) => {
      const left = [2, 0, 2].map((partition) => ({ topic: "left", partition, value: Buffer.from("l") }));
      await producer.send({ messages: [...left, { topic: "right", value: Buffer.from("r") }] });
    });
    const places = (await readTopic(kafka.brokers, "left")).map(({ partition, offset }) => [partition, offset]);
    assert.deepEqual(places, [
      [0, 0],
      [2, 0],
      [2, 1],
    ]);
    assert.equal((await readTopic(kafka.brokers, "left", { partition: 2 })).length, 2);
    assert.equal((await readTopics(kafka.brokers, ["left", "right"])).length, 4);
    await assert.rejects(readTopic(kafka.brokers, "nowhere", { settings: { "allow.auto.create.topics": "false" } }));
  });

  test("follows a topic while it grows and while its broker is killed", async () => {
    await kafka.createTopic("growing");
    const grow = (value: string) =>
      withProducer(kafka, {}, (producer) =>
        producer.send({ messages: [{ topic: "growing", value: Buffer.from(value) }] }),
      );
    await using follower = await followTopic(kafka.brokers, "growing");
    await grow("before");
    await follower.waitFor(1);
    await kafka.kill();
    await kafka.restart();
    await grow("after");
    const records = await follower.waitFor((all) => all.some(({ value }) => String(value) === "after"));
    assert.deepEqual(
      records.map(({ value }) => String(value)),
      ["before", "after"],
    );
    await assert.rejects(follower.waitFor(3, 1), /there are 2/);
  });
});

async function withProducer(
  kafka: KafkaServer,
  options: Partial<ProducerOptions<Buffer, Buffer, Buffer, Buffer>>,
  work: (producer: Producer<Buffer, Buffer, Buffer, Buffer>) => Promise<unknown>,
): Promise<void> {
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    clientId: "test",
    bootstrapBrokers: [kafka.brokers],
    acks: -1,
    idempotent: true,
    retries: 50,
    retryDelay: 50,
    ...options,
  });
  try {
    await work(producer);
  } finally {
    await producer.close();
  }
}
