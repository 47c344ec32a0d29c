import { optionalClient } from "../../core/optional-client.ts";
import { RedisLink } from "../../core/redis-link.ts";
import type { RedisSettings } from "./redis-config.ts";
import { type Argument, withSource } from "./redis-script.ts";

type RedisClient = Pick<typeof import("ioredis"), "Redis">;

export const loadRedis: () => Promise<RedisClient> = optionalClient(
  "the Redis client",
  "ioredis@6",
  () => import("ioredis"),
);

/** A connection to the Redis server. */
export class StreamLink extends RedisLink {
  constructor(library: RedisClient, settings: RedisSettings) {
    super(library, { ...settings, ...settings.hosts[0]! });
  }

  /** Runs the script by EVALSHA, and by EVAL if the server does not have it. */
  async runScript(args: Argument[]): Promise<unknown> {
    try {
      return await this.client.call("EVALSHA", args);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return await this.client.call("EVAL", withSource(args));
    }
  }

  /**
   * Waits until `count` replicas have all writes of this connection, or the time is over; returns how many have them.
   */
  async awaitReplicas(count: number, timeoutMs: number): Promise<number> {
    return Number(await this.client.call("WAIT", [count, timeoutMs]));
  }
}
