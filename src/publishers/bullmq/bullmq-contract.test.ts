import { after, before, test } from "node:test";
import { type Job, Queue } from "bullmq";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { publisherContract } from "../../testing/contracts/publisher-contract.ts";
import type { PublisherHarness, Received } from "../../testing/contracts/publisher-subject.ts";
import { type BullmqEvent, bullmqPublisher } from "./bullmq-publisher.ts";

let server: RedisServer;
let opened = 0;

before(async () => {
  server = await startRedis(["--maxmemory-policy", "noeviction"]);
});

after(() => server[Symbol.asyncDispose]());

const harness: PublisherHarness = {
  capabilities: { keyOrderInBatch: false, deduplicates: true, refuses: true, stalls: true, stops: true },
  async open() {
    opened += 1;
    const topic = `contract-${opened}`;
    return {
      publisher: bullmqPublisher({ hosts: [`127.0.0.1:${server.port}`] }),
      topic,
      received: () => readQueue(topic),
      refuse: async (message) => ({ ...message, topic: "with:colon" }),
      stall: () => server.pause(),
      resume: async () => server.resume(),
      stop: () => server.kill(),
      start: () => server.restart(),
      close: async () => {},
    };
  },
};

for (const check of applicableCases(publisherContract, harness)) {
  test(`bullmq publisher: ${check.rule}`, () => check.run(harness));
}

/** What waits, in the order in which workers get it. */
async function readQueue(topic: string): Promise<Received[]> {
  const queue = new Queue(topic, { connection: { host: "127.0.0.1", port: server.port } });
  const jobs: Job<BullmqEvent>[] = await queue.getJobs(["waiting"], 0, -1, true);
  await queue.close();
  return jobs.map(({ data: { encoding, headers, id, key, payload } }) => {
    return { id, topic, key, headers, payload: Buffer.from(payload, encoding) };
  });
}
