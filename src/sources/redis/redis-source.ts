import { RelayError } from "../../core/errors.ts";
import type { Membership } from "../../ports/membership.ts";
import type { Backlog, QueueSource } from "../../ports/queue-store.ts";
import { joinScript, leaveScript, reapScript, renewScript } from "./lua/membership.ts";
import { type RedisSourceOptions, redisSettings } from "./redis-config.ts";
import { UNROUTED_COUNT_MAX } from "./redis-counts.ts";
import { type Argument, addressOf, RedisLink } from "./redis-link.ts";
import { type Reply, textsOf } from "./redis-replies.ts";
import type { Script } from "./redis-script.ts";
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

/** Instances and their leases in Redis. All times are the server's. */
function redisMembership(link: RedisLink, databaseId: string): Membership {
  const run = (doing: string, script: Script, ...args: readonly Argument[]) =>
    link.run("heartbeat", doing, script, ["", ...args]);
  return {
    databaseId,
    join: async ({ id, leaseMs, name, pipelines, takes }) => {
      const taken = takes === undefined ? "" : JSON.stringify(takes);
      const joined = await run("joining", joinScript, id, name, Math.ceil(leaseMs), taken, ...pipelines);
      if (joined !== 1) throw new RelayError("DATABASE_REFUSED", `The instance ${id} exists already.`);
    },
    renew: async (id, leaseMs) => (await run("renewing the heartbeat", renewScript, id, Math.ceil(leaseMs))) === 1,
    reap: async () => textsOf((await run("reaping dead instances", reapScript)) as Reply),
    leave: async (id) => void (await run("leaving", leaveScript, id)),
  };
}
