import { after, before, test } from "node:test";
import type { Message as QueuedMessage } from "@aws-sdk/client-sqs";
import { type ElasticMq, startElasticMq } from "../../../test/servers/elasticmq.ts";
import { startTcpProxy, type TcpProxy } from "../../../test/servers/tcp-proxy.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { publisherContract } from "../../testing/contracts/publisher-contract.ts";
import type { PublisherHarness, Received } from "../../testing/contracts/publisher-subject.ts";
import { sqsPublisher } from "./sqs-publisher.ts";

let elasticMq: ElasticMq;
let proxy: TcpProxy;
let opened = 0;

before(async () => {
  elasticMq = await startElasticMq();
  proxy = await startTcpProxy(elasticMq.port);
});

after(async () => {
  await proxy[Symbol.asyncDispose]();
  await elasticMq[Symbol.asyncDispose]();
});

const harness: PublisherHarness = {
  capabilities: { keyOrderInBatch: true, deduplicates: true, refuses: true, stalls: true, stops: true },
  async open() {
    opened += 1;
    const queue = `contract-${opened}.fifo`;
    const queueUrl = await elasticMq.createQueue(queue);
    const taken: Received[] = [];
    return {
      publisher: sqsPublisher({
        region: "eu-central-1",
        queue,
        endpoint: `http://127.0.0.1:${proxy.port}`,
        credentials: { accessKeyId: "local", secretAccessKey: "local" },
        // A server that has just started takes its time.
        sendTimeoutMs: 20_000,
      }),
      topic: `contract.${opened}`,
      async received() {
        taken.push(...(await elasticMq.drain(queueUrl)).map(receivedOf));
        return [...taken];
      },
      refuse: async (message) => ({ ...message, payload: Buffer.alloc(1_100_000) }),
      stall: () => elasticMq.pause(),
      resume: async () => elasticMq.resume(),
      // The server has its queues in memory only, so the network goes away instead.
      async stop() {
        proxy.refuse(true);
        proxy.cut();
      },
      start: async () => proxy.refuse(false),
      close: async () => {},
    };
  },
};

for (const check of applicableCases(publisherContract, harness)) {
  test(`sqs publisher: ${check.rule}`, () => check.run(harness));
}

function receivedOf({ Body = "", MessageAttributes = {} }: QueuedMessage): Received {
  const entries = Object.entries(MessageAttributes).map(([name, { StringValue }]) => [name, StringValue ?? ""]);
  const {
    topic = "",
    "partition-key": key = null,
    "payload-encoding": encoding,
    ...headers
  } = Object.fromEntries(entries);
  const payload = encoding === "empty" ? Buffer.alloc(0) : Buffer.from(Body, encoding ?? "utf8");
  return { id: headers["event-id"] ?? "", topic, key, headers, payload };
}
