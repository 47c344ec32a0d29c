import { after, before, test } from "node:test";
import type { ConsumeMessage } from "amqplib";
import { type RabbitServer, startRabbit } from "../../../test/servers/rabbitmq.ts";
import { overRabbit, takeAll } from "../../../test/servers/rabbitmq-reader.ts";
import { until } from "../../../test/servers/until.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { publisherContract } from "../../testing/contracts/publisher-contract.ts";
import type { PublisherHarness, Received } from "../../testing/contracts/publisher-subject.ts";
import { rabbitPublisher } from "./rabbitmq-publisher.ts";

let rabbit: RabbitServer;
let opened = 0;

before(async () => {
  rabbit = await startRabbit();
});

after(() => rabbit[Symbol.asyncDispose]());

const harness: PublisherHarness = {
  capabilities: { keyOrderInBatch: false, deduplicates: false, refuses: true, stalls: true, stops: true },
  async open() {
    opened += 1;
    const [exchange, queue, topic] = [`events-${opened}`, `queue-${opened}`, `contract-${opened}`];
    await overRabbit(rabbit.url, async (channel) => {
      await channel.assertExchange(exchange, "topic", { durable: true });
      await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
      await channel.bindQueue(queue, exchange, topic);
    });
    const openedMs = performance.now();
    const taken: ConsumeMessage[] = [];
    return {
      publisher: rabbitPublisher({ hosts: [`127.0.0.1:${rabbit.port}`], exchange }),
      topic,
      async received() {
        taken.push(...(await takeAll(rabbit.url, queue)));
        return taken.map(receivedOf);
      },
      async refuse(message) {
        await bindFullQueue(exchange, `${topic}.full`);
        return { ...message, topic: `${topic}.full` };
      },
      stall: () => rabbit.pause(),
      resume: async () => rabbit.resume(),
      async stop() {
        // A queue that is killed right after its birth is broken for good.
        await until("the queue is on disk", () => performance.now() - openedMs > 2_000);
        await rabbit.kill();
      },
      start: () => rabbit.restart(),
      close: async () => {},
    };
  },
};

for (const check of applicableCases(publisherContract, harness)) {
  test(`rabbitmq publisher: ${check.rule}`, () => check.run(harness));
}

/** It has no room at all and says so. */
async function bindFullQueue(exchange: string, topic: string): Promise<void> {
  await overRabbit(rabbit.url, async (channel) => {
    await channel.assertQueue(topic, { durable: true, maxLength: 0, overflow: "reject-publish" });
    await channel.bindQueue(topic, exchange, topic);
  });
}

function receivedOf({ content, fields, properties }: ConsumeMessage): Received {
  const { "partition-key": key = null, ...headers } = properties.headers ?? {};
  return { id: properties.messageId, topic: fields.routingKey, key, headers, payload: content };
}
