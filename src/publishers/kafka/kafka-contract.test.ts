import { after, before, test } from "node:test";
import { type KafkaServer, startKafka } from "../../../test/servers/kafka.ts";
import { type KafkaRecord, readTopic } from "../../../test/servers/kafka-reader.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { publisherContract } from "../../testing/contracts/publisher-contract.ts";
import type { PublisherHarness, Received } from "../../testing/contracts/publisher-subject.ts";
import { kafkaPublisher } from "./kafka-publisher.ts";

let kafka: KafkaServer;
let opened = 0;

before(async () => {
  kafka = await startKafka();
});

after(() => kafka[Symbol.asyncDispose]());

const harness: PublisherHarness = {
  capabilities: { keyOrderInBatch: true, deduplicates: false, refuses: true, stalls: true, stops: true },
  async open() {
    opened += 1;
    const topic = `contract-${opened}`;
    await kafka.createTopic(topic, { partitions: 3 });
    return {
      publisher: kafkaPublisher({ brokers: [kafka.brokers], delivery: "at-least-once" }),
      topic,
      received: async () => (await readTopic(kafka.directBrokers, topic)).map(receivedOf),
      refuse: async (message) => ({ ...message, payload: Buffer.alloc(1_200_000) }),
      stall: () => kafka.pause(),
      resume: async () => kafka.resume(),
      stop: () => kafka.kill(),
      start: () => kafka.restart(),
      close: async () => {},
    };
  },
};

for (const check of applicableCases(publisherContract, harness)) {
  test(`kafka publisher, at least once: ${check.rule}`, () => check.run(harness));
}

function receivedOf({ topic, key, value, headers }: KafkaRecord): Received {
  const texts = Object.fromEntries(headers.map(([name, bytes]) => [name, String(bytes)]));
  return {
    id: texts["event-id"] ?? "",
    topic,
    key: key?.toString() ?? null,
    headers: texts,
    payload: value ?? Buffer.from("null"),
  };
}
