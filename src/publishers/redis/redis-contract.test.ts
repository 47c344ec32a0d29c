import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { applicableCases } from "../../testing/contracts/contract-case.ts";
import { publisherContract } from "../../testing/contracts/publisher-contract.ts";
import type { PublisherHarness } from "../../testing/contracts/publisher-subject.ts";
import { readStream } from "./redis-fixture.test.ts";
import { redisPublisher } from "./redis-publisher.ts";

let server: RedisServer;
let redis: Redis;
let opened = 0;

before(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  redis.on("error", () => {});
});

after(async () => {
  redis.disconnect();
  await server[Symbol.asyncDispose]();
});

function harness(dedupeMs: number): PublisherHarness {
  return {
    capabilities: { keyOrderInBatch: true, deduplicates: dedupeMs > 0, refuses: true, stalls: true, stops: true },
    async open() {
      opened += 1;
      const topic = `contract-${opened}`;
      return {
        publisher: redisPublisher({ hosts: [`127.0.0.1:${server.port}`], dedupeMs }),
        topic,
        received: () => readStream(redis, topic),
        refuse: async (message) => ({ ...message, headers: { ...message.headers, half: "\ud800" } }),
        stall: () => server.pause(),
        resume: async () => server.resume(),
        stop: () => server.kill(),
        start: () => server.restart(),
        close: async () => {},
      };
    },
  };
}

const deduplicating = harness(60_000);
for (const check of applicableCases(publisherContract, deduplicating)) {
  test(`redis publisher: ${check.rule}`, () => check.run(deduplicating));
}

const plain = harness(0);
for (const check of applicableCases(publisherContract, plain)) {
  test(`redis publisher without deduplication: ${check.rule}`, () => check.run(plain));
}
