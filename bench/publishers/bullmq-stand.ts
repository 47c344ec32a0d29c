import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { bullmqPublisher } from "../../src/publishers/bullmq/bullmq-publisher.ts";
import { startRedis } from "../../test/servers/redis.ts";
import type { PublisherBench } from "./publisher-stand.ts";

const TOPIC = "bench.event";

export const bullmqBench: PublisherBench = {
  name: "bullmq",
  async open() {
    const server = await startRedis(["--maxmemory-policy", "noeviction"]);
    const publisher = bullmqPublisher({ hosts: [`127.0.0.1:${server.port}`] });
    const client = new Redis({ host: "127.0.0.1", port: server.port, maxRetriesPerRequest: null });
    const queue = new Queue(TOPIC, { connection: client });
    return {
      publisher,
      topic: TOPIC,
      async sendRaw(batch) {
        await queue.addBulk(
          batch.map(({ event, headers, key, payload }) => ({
            name: event.type,
            data: { id: event.id, key, headers, payload: payload.toString() },
            opts: { jobId: event.id },
          })),
        );
      },
      arrived: () => queue.getWaitingCount(),
      async [Symbol.asyncDispose]() {
        await publisher.close();
        await queue.close();
        client.disconnect();
        await server[Symbol.asyncDispose]();
      },
    };
  },
};
