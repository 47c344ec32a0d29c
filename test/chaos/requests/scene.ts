import { resolve } from "node:path";
import { Redis } from "ioredis";
import { CONTEXT } from "../../../examples/requests/payouts.ts";
import { kurrentdbLog } from "../../../src/kurrentdb.ts";
import type { EventLog } from "../../../src/ports/event-log.ts";
import { startService } from "../../e2e/service-process.ts";
import { freePort } from "../../servers/free-port.ts";
import { type KurrentDb, startKurrentDb } from "../../servers/kurrentdb.ts";
import { type RedisServer, startRedis } from "../../servers/redis.ts";
import { startTcpProxy, type TcpProxy } from "../../servers/tcp-proxy.ts";
import { Bank } from "./bank.ts";
import { Crew } from "./crew.ts";

const WORKER = resolve(import.meta.dirname, "../../../examples/requests/worker.ts");
export const CHECKPOINT = "payment.payout.relay.checkpoint";
export const LEASE_MS = 2_000;
export const LOCK_MS = 3_000;
/** The file must hold everything that ever happened. */
const REDIS_FLAGS = ["--maxmemory-policy", "noeviction", "--auto-aof-rewrite-percentage", "0"];

/** The example with all of its processes: event store, Redis, bank, two relays, two workers. */
export interface Scene extends AsyncDisposable {
  readonly store: KurrentDb;
  readonly redis: RedisServer;
  /** Between the relays and Redis. */
  readonly wire: TcpProxy;
  readonly bank: Bank;
  readonly relays: Crew;
  readonly workers: Crew;
  /** The writers' way to the event store. */
  readonly log: EventLog;
  /** For looking at Redis. */
  readonly admin: Redis;
}

/** The ways in which a relay may be set up. */
export interface SceneOptions {
  readonly subscription: "all" | "category";
  readonly checkpoints: "redis" | "eventstore";
}

export async function openScene(options: SceneOptions): Promise<Scene> {
  await using opened = new AsyncDisposableStack();
  const [store, redis, bank] = await Promise.all([startKurrentDb(), startRedis(REDIS_FLAGS), Bank.open()]);
  for (const server of [store, redis, bank]) opened.use(server);
  const wire = opened.use(await startTcpProxy(redis.port));
  const relays = opened.use(new Crew("relay", () => startRelay(store, wire, options)));
  const workers = opened.use(new Crew("worker", async () => startWorker(store, redis, bank)));
  const log = kurrentdbLog({ url: store.url, requestTimeoutMs: 3_000 });
  opened.defer(() => log.close());
  const admin = new Redis(redis.url, { maxRetriesPerRequest: null });
  admin.on("error", () => {});
  opened.defer(() => admin.disconnect());
  await Promise.all([relays.add(), relays.add(), workers.add(), workers.add()]);
  const rest = opened.move();
  return {
    ...{ store, redis, wire, bank, relays, workers, log, admin },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

async function startRelay(store: KurrentDb, wire: TcpProxy, { checkpoints, subscription }: SceneOptions) {
  return startService(["run"], {
    KURRENTDB_URL: store.url,
    KURRENTDB_SUBSCRIPTION: subscription,
    REQUEST_CHECKPOINTS: checkpoints,
    OUTBOX_CONTEXTS: CONTEXT,
    // A finished job is gone at once, so that only the marker keeps its event from becoming another one.
    OUTBOX_DESTINATION: `bullmq+redis://127.0.0.1:${wire.port}/0?removeOnComplete=true`,
    LEASE_TIMEOUT: `${LEASE_MS}ms`,
    PORT: String(await freePort()),
  });
}

function startWorker(store: KurrentDb, redis: RedisServer, bank: Bank) {
  const env = { KURRENTDB_URL: store.url, REDIS_URL: redis.url, BANK_URL: bank.url, LOCK: String(LOCK_MS) };
  return startService([WORKER], env, process.execPath);
}
