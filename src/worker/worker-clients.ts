import type { DelayedError, Worker } from "bullmq";
import type { Redis, RedisOptions } from "ioredis";
import { RelayError } from "../core/errors.ts";

export interface WorkerLibrary {
  readonly Worker: typeof Worker;
  readonly DelayedError: typeof DelayedError;
  readonly Redis: typeof Redis;
}

/** An address as `redis://user:password@host:6379/0`, or the options of ioredis. */
export type RedisPlace = string | ClientOptions;

/** Replies in another form would not be understood here. */
type ClientOptions = Omit<RedisOptions, "replyMapping">;

const INSTALL = "npm install bullmq@6.7.0 ioredis@6.0.0";
/** So that a worker is back soon after Redis is. */
const RECONNECT_MS_MAX = 2_000;
const ANSWER_MS_MAX = 4_000;

let loading: Promise<WorkerLibrary> | undefined;

/** The clients are optional peer dependencies: without them the error says what to install. */
export function loadWorkerLibrary(): Promise<WorkerLibrary> {
  loading ??= Promise.all([import("bullmq"), import("ioredis")]).then(
    ([{ DelayedError, Worker }, { Redis }]) => ({ DelayedError, Worker, Redis }),
    (cause: unknown) => {
      throw new RelayError("CONFIG_INVALID", `BullMQ or its client is missing, install them: ${INSTALL}.`, { cause });
    },
  );
  return loading;
}

/** Waits for Redis as long as it takes: BullMQ sends its commands again by itself. */
export function connectQueue(library: WorkerLibrary, place: RedisPlace, over: AbortSignal): Redis {
  return connect(library, place, over, { maxRetriesPerRequest: null });
}

/** Says at once when Redis does not answer: only the lock knows how long it may still try. */
export function connectLocks(library: WorkerLibrary, place: RedisPlace, over: AbortSignal, lockMs: number): Redis {
  return connect(library, place, over, {
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    // Several tries within the life of a lock.
    commandTimeout: Math.min(ANSWER_MS_MAX, Math.ceil(lockMs / 4)),
  });
}

function connect({ Redis }: WorkerLibrary, place: RedisPlace, over: AbortSignal, own: ClientOptions): Redis {
  const options: ClientOptions = {
    // BullMQ makes connections of its own after this one; those, too, must end with the worker.
    retryStrategy: (tries: number) => (over.aborted ? null : Math.min(50 * 2 ** tries, RECONNECT_MS_MAX)),
    ...own,
  };
  return typeof place === "string" ? new Redis(place, options) : new Redis({ ...place, ...options });
}

/** Throws CONFIG_INVALID without showing the address, which may hold a password. */
export function requireRedisPlace(place: RedisPlace): void {
  if (typeof place !== "string") return;
  const url = URL.parse(place);
  if (url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== "") return;
  throw new RelayError("CONFIG_INVALID", "redis is no address of the form redis://user:password@host:6379/0.");
}
