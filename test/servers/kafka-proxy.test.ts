import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { Producer } from "@platformatic/kafka";
import type { KafkaServer } from "./kafka.ts";
import type { Fate } from "./kafka-proxy.ts";
import { frameSplitter, type KafkaRequest, parseRequest } from "./kafka-proxy-wire.ts";
import { readTopic } from "./kafka-reader.ts";
import { proxiedKafka } from "./proxied-kafka.ts";
import { until } from "./until.ts";

const pass: Fate = { kind: "pass" };
/** Longer than any test: what is kept back goes when the test says so. */
const LONG_MS = 60_000;

describe("a proxy in front of a real broker", () => {
  const stand = proxiedKafka();

  test("a late commit arrives when the next transaction has begun, and makes that one visible to a naive client's harm", async () => {
    await stand.kafka.createTopic("late-commit");
    const isHeld = (request: KafkaRequest) => request.name === "EndTxn" && request.transactionalId === "naive";
    stand.proxy.decide = firstOnly(isHeld, { kind: "hold", ms: LONG_MS, reset: true });
    const producer = naiveProducer(stand.kafka.brokers, "naive");
    try {
      await writeTransaction(producer, "late-commit", "first").then((transaction) => transaction.commit());
      await writeTransaction(producer, "late-commit", "second");
      assert.equal(stand.proxy.heldCount, 1);
      assert.deepEqual(await committedValues(stand.kafka, "late-commit"), ["first"]);
      stand.proxy.release();
      await until("the late commit is answered", () => stand.proxy.watch.lateCounts.accepted === 1);
      await until("the transaction that nobody committed is visible", async () =>
        (await committedValues(stand.kafka, "late-commit")).includes("second"),
      );
    } finally {
      await producer.close(true);
    }
    const { late, overtaken, byName } = stand.proxy.watch.lateCounts;
    assert.deepEqual({ late, overtaken, byName }, { late: 1, overtaken: 1, byName: { EndTxn: 1 } });
  });

  test("a request that is kept back outlives its client", async () => {
    await until("the coordinator is there", async () => (await initProducer(stand.proxy.port, "gone")) !== undefined);
    const epoch = await initProducer(stand.proxy.port, "gone");
    const { accepted } = stand.proxy.watch.lateCounts;
    stand.proxy.decide = firstOnly(({ transactionalId }) => transactionalId === "gone", {
      kind: "hold",
      ms: LONG_MS,
      reset: false,
    });
    const client = connect(stand.proxy.port, "127.0.0.1");
    client.write(initProducerRequest("gone"));
    await until("the request is kept back", () => stand.proxy.heldCount === 1);
    client.destroy();
    await until("the proxy knows that the client is gone", () => stand.proxy.clientCount === 0);
    stand.proxy.release();
    await until("it is answered", () => stand.proxy.watch.lateCounts.accepted === accepted + 1);
    assert.equal(await initProducer(stand.proxy.port, "gone"), epoch! + 2);
  });

  test("a lost answer comes after the effect, a lost request has none", async () => {
    await until("the coordinator is there", async () => (await initProducer(stand.proxy.port, "lost")) !== undefined);
    const epoch = await initProducer(stand.proxy.port, "lost");
    const isMine = ({ transactionalId }: KafkaRequest) => transactionalId === "lost";
    stand.proxy.decide = firstOnly(isMine, { kind: "lose-answer", reset: true });
    await assert.rejects(initProducer(stand.proxy.port, "lost"), { code: "ECONNRESET" });
    assert.equal(await initProducer(stand.proxy.port, "lost"), epoch! + 2);
    stand.proxy.decide = firstOnly(isMine, { kind: "lose" });
    await assert.rejects(initProducer(stand.proxy.port, "lost"), { code: "ECONNRESET" });
    assert.equal(await initProducer(stand.proxy.port, "lost"), epoch! + 3);
  });

  test("knows by the client's port which transactions are open", async () => {
    await stand.kafka.createTopic("open");
    stand.proxy.decide = () => pass;
    const producer = naiveProducer(stand.kafka.brokers, "watched");
    const ports = new Set(Array.from({ length: 65_536 }, (_, port) => port));
    const isOpen = () => stand.proxy.watch.openOver(ports).includes("watched");
    try {
      const transaction = await writeTransaction(producer, "open", "one");
      assert.ok(isOpen());
      assert.deepEqual(stand.proxy.watch.openOver(new Set([1])), []);
      await transaction.commit();
      assert.ok(!isOpen());
    } finally {
      await producer.close(true);
    }
  });
});

test("frames are found wherever the stream is cut", () => {
  const frames = ["one", "two", "three"].map(initProducerRequest);
  const stream = Buffer.concat(frames);
  for (let size = 1; size <= stream.length; size += 1) {
    const ids: (string | null)[] = [];
    const split = frameSplitter((frame) => ids.push(parseRequest(frame).transactionalId));
    for (let at = 0; at < stream.length; at += size) split(stream.subarray(at, at + size));
    assert.deepEqual(ids, ["one", "two", "three"]);
  }
});

/** The first request that fits has this fate, all others pass. */
function firstOnly(fits: (request: KafkaRequest) => boolean, fate: Fate): (request: KafkaRequest) => Fate {
  let isSpent = false;
  return (request) => {
    if (isSpent || !fits(request)) return pass;
    isSpent = true;
    return fate;
  };
}

/** Sends requests again on the same epoch when it lost its connection, as clients did before transactions of version 2. */
function naiveProducer(brokers: string, transactionalId: string): Producer {
  return new Producer({
    clientId: "naive",
    bootstrapBrokers: [brokers],
    idempotent: true,
    transactionalId,
    producerId: -1n,
    producerEpoch: -1,
    retries: 100,
    retryDelay: 30,
    timeout: 120_000,
  });
}

async function writeTransaction(producer: Producer, topic: string, value: string) {
  const transaction = await producer.beginTransaction({});
  await transaction.send({ messages: [{ topic, value: Buffer.from(value) }] });
  return transaction;
}

async function committedValues(kafka: KafkaServer, topic: string): Promise<string[]> {
  return (await readTopic(kafka.directBrokers, topic)).map(({ value }) => String(value));
}

/** InitProducerId in version 1, by hand. */
function initProducerRequest(transactionalId: string): Buffer {
  const text = (value: string) => Buffer.concat([int(value.length, 2), Buffer.from(value)]);
  const body = Buffer.concat([int(22, 2), int(1, 2), int(7, 4), text("raw"), text(transactionalId), int(30_000, 4)]);
  return Buffer.concat([int(body.length, 4), body]);
}

function int(value: number, bytes: 2 | 4): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeIntBE(value, 0, bytes);
  return buffer;
}

/** Returns the epoch, or nothing while the coordinator is not ready. */
async function initProducer(port: number, transactionalId: string): Promise<number | undefined> {
  const socket = connect(port, "127.0.0.1");
  try {
    socket.write(initProducerRequest(transactionalId));
    const [answer]: Buffer[] = await once(socket, "data");
    const errorCode = answer!.readInt16BE(12);
    return errorCode === 0 ? answer!.readInt16BE(22) : undefined;
  } finally {
    socket.destroy();
  }
}
