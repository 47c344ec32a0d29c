import { RelayError } from "../../core/errors.ts";
import type { Membership } from "../../ports/membership.ts";
import { joinScript, leaveScript, reapScript, renewScript } from "./lua/membership.ts";
import type { Argument, RedisLink } from "./redis-link.ts";
import { type Reply, textsOf } from "./redis-replies.ts";
import type { Script } from "./redis-script.ts";

/** Instances and their leases in Redis. All times are the server's. */
export function redisMembership(link: RedisLink, databaseId: string): Membership {
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
