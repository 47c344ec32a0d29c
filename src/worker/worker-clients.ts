import type { DelayedError, Worker } from "bullmq";
import type { Redis, RedisOptions } from "ioredis";
import { backoffMs } from "../core/backoff.ts";
import { RelayError } from "../core/errors.ts";
import { optionalClient } from "../core/optional-client.ts";

/** The clients of BullMQ and Redis. */
export interface WorkerLibrary {
  readonly Worker: typeof Worker;
  readonly DelayedError: typeof DelayedError;
  readonly Redis: typeof Redis;
}

/** An address as `redis://user:password@host:6379/0`, or the options of ioredis. */
export type RedisPlace = string | Omit<RedisOptions, "replyMapping">;

/** The worker relies on replies in the default form. */
type ClientOptions = Exclude<RedisPlace, string>;

/** So that a worker is back soon after Redis is. */
const RECONNECT_MS = { firstMs: 50, lastMs: 2_000 };
const ANSWER_MS_MAX = 4_000;

export const loadWorkerLibrary: () => Promise<WorkerLibrary> = optionalClient(
  "BullMQ or its client",
  "bullmq@6 ioredis@6",
  () =>
    Promise.all([import("bullmq"), import("ioredis")]).then(([{ DelayedError, Worker }, { Redis }]) => ({
      DelayedError,
      Worker,
      Redis,
    })),
);

/** Waits for Redis without a limit: BullMQ retries its commands itself. */
export function connectQueue(library: WorkerLibrary, place: RedisPlace, over: AbortSignal): Redis {
  return connect(library, place, over, { maxRetriesPerRequest: null });
}

/** Fails fast when Redis does not answer: the lock itself decides how long to retry. */
export function connectLocks(library: WorkerLibrary, place: RedisPlace, over: AbortSignal, lockMs: number): Redis {
  return connect(library, place, over, {
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    // Allows several attempts within the lifetime of a lock.
    commandTimeout: Math.min(ANSWER_MS_MAX, Math.ceil(lockMs / 4)),
  });
}

function connect({ Redis }: WorkerLibrary, place: RedisPlace, over: AbortSignal, own: ClientOptions): Redis {
  const options: ClientOptions = {
    // BullMQ duplicates this connection; the duplicates must end with the worker, too.
    retryStrategy: (tries: number) => (over.aborted ? null : backoffMs(RECONNECT_MS, tries)),
    ...own,
  };
  return typeof place === "string" ? new Redis(place, options) : new Redis({ ...place, ...options });
}

/** Throws CONFIG_INVALID without showing the address, which may hold a password. */
export function requireRedisPlace(place: RedisPlace): void {
  if (typeof place !== "string") return;
  const url = URL.parse(place);
  if (url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== "") return;
  throw new RelayError("CONFIG_INVALID", "redis is not an address of the form redis://user:password@host:6379/0.");
}
