import { LinkPool, publishOverLink } from "../../core/link-pool.ts";
import { examineRedisServer } from "../../core/redis-link.ts";
import type { Publisher } from "../../ports/publisher.ts";
import { loadRedis, StreamLink } from "./redis-client.ts";
import { describeHosts, type RedisPublisherOptions, redisSettings } from "./redis-config.ts";
import { Delivery } from "./redis-delivery.ts";
import { connectionReason } from "./redis-errors.ts";

export type { RedisPublisherOptions, RedisTls } from "./redis-config.ts";

/** Publishes to Redis Streams. Connects with the first event. */
export function redisPublisher(options: RedisPublisherOptions): Publisher {
  const settings = redisSettings(options);
  let pool: Promise<LinkPool<StreamLink>> | null = null;
  return {
    name: settings.name,
    // The script stops at the first failed event, and no later event of a key is sent before the earlier one is
    // answered.
    capabilities: { keyOrderInBatch: true, deduplicates: settings.dedupeMs > 0 },
    async publish(batch, report, signal) {
      if (batch.length === 0) return;
      pool ??= loadRedis().then((library) => new LinkPool(() => new StreamLink(library, settings)));
      await publishOverLink(await pool, { ...settings, report, signal }, (link, reportOutcome) =>
        new Delivery(settings, link, reportOutcome).run(batch),
      );
    },
    async examine(signal) {
      const link = new StreamLink(await loadRedis(), settings);
      const where = `Redis at ${describeHosts(settings)}`;
      const reasonOf = (error: unknown) => connectionReason(settings, error);
      return await examineRedisServer(link, { ...settings, where, reasonOf }, signal);
    },
    async close() {
      await (await pool?.catch(() => null))?.close();
    },
  };
}
