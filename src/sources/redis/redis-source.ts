import type { Backlog, QueueSource } from "../../ports/queue-store.ts";
import { type RedisSourceOptions, redisSettings } from "./redis-config.ts";
import { UNROUTED_COUNT_MAX } from "./redis-counts.ts";
import { addressOf, RedisLink } from "./redis-link.ts";
import { redisMembership } from "./redis-membership.ts";
import { RedisStore } from "./redis-store.ts";

/** A source whose events wait in Redis. It connects at the first use. */
export function redisSource(options: RedisSourceOptions): QueueSource {
  const settings = redisSettings(options);
  const { deliveredIdsMs, place, sourceName } = settings;
  const link = new RedisLink(settings);
  const stores = new Map<string, RedisStore>();
  return {
    name: sourceName,
    membership: redisMembership(link, `redis ${addressOf(place)}#${place.name}`),
    pipeline: (spec) => {
      const store = new RedisStore({ link, spec, deliveredIdsMs });
      stores.set(spec.name, store);
      return store;
    },
    async backlogs() {
      const backlogs = new Map<string, Backlog>();
      const unrouted = [];
      for (const [pipeline, store] of stores) {
        backlogs.set(pipeline, await store.backlog());
        unrouted.push(...(await store.unrouted()));
      }
      const events = unrouted.reduce((sum, { count }) => sum + count, 0);
      const isEstimate = unrouted.some(({ count }) => count >= UNROUTED_COUNT_MAX);
      return { pipelines: backlogs, unrouted: { events, isEstimate, oldestAgeMs: null } };
    },
    close: () => link.close(),
  };
}
