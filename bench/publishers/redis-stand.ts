import { Redis } from "ioredis";
import type { Message } from "../../src/core/event.ts";
import { redisPublisher } from "../../src/publishers/redis/redis-publisher.ts";
import { startRedis } from "../../test/servers/redis.ts";
import type { PublisherBench } from "./publisher-stand.ts";

const TOPIC = "bench.event";
/** As many connections as there are publishes at a time, as with the publisher. */
const CONNECTIONS = 8;

export const redisBench: PublisherBench = {
  name: "redis",
  async open() {
    const server = await startRedis();
    const publisher = redisPublisher({ hosts: [`127.0.0.1:${server.port}`] });
    const clients = Array.from({ length: CONNECTIONS }, () => new Redis(server.url));
    let sent = 0;
    return {
      publisher,
      topic: TOPIC,
      sendRaw: (batch) => sendRaw(clients[sent++ % CONNECTIONS]!, batch),
      arrived: () => clients[0]!.xlen(TOPIC),
      async [Symbol.asyncDispose]() {
        await publisher.close();
        for (const client of clients) client.disconnect();
        await server[Symbol.asyncDispose]();
      },
    };
  },
};

/** A pipeline of plain XADD, which drops no duplicates. */
async function sendRaw(client: Redis, batch: readonly Message[]): Promise<void> {
  const pipeline = client.pipeline();
  for (const { event, headers, key, payload, topic } of batch) {
    const fields: (string | Buffer)[] = ["id", event.id, "payload", payload];
    if (key !== null) fields.push("partition_key", key);
    for (const name in headers) fields.push(`h:${name}`, headers[name]!);
    pipeline.xadd(topic, "*", ...fields);
  }
  for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
}
