import type { QueueSource } from "../../ports/queue-store.ts";
import { type RedisSourceOptions, redisSettings } from "./redis-config.ts";
import { addressOf, RedisLink } from "./redis-link.ts";
import { redisMembership } from "./redis-membership.ts";
import { RedisStore } from "./redis-store.ts";

/** Events that wait in Redis. Nothing is sent before the first use. */
export function redisSource(options: RedisSourceOptions): QueueSource {
  const settings = redisSettings(options);
  const { deliveredIdsMs, place, sourceName } = settings;
  const link = new RedisLink(settings);
  return {
    name: sourceName,
    membership: redisMembership(link, `redis ${addressOf(place)}#${place.name}`),
    pipeline: (spec) => new RedisStore({ link, spec, deliveredIdsMs }),
    close: () => link.close(),
  };
}
