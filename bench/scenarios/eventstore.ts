import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { type KurrentDb, startKurrentDb } from "../../test/servers/kurrentdb.ts";
import { type RedisServer, startRedis } from "../../test/servers/redis.ts";
import { until } from "../../test/servers/until.ts";
import { eventsOf, queueAt } from "../eventstore/bench-requests.ts";
import { compileProgram, startRequestRelay } from "../eventstore/request-relay-process.ts";
import { atLeast, atMost, type Figure, measured, type Scenario, type ScenarioOptions } from "../figure.ts";
import { measureParts } from "../measure-parts.ts";

const RAW = fileURLToPath(new URL("../eventstore/raw-jobs.ts", import.meta.url));
const REQUESTS = 80_000;
/** The machine's mood changes: the two take turns, the first round warms up, and the better half of the others counts. */
const ROUNDS = 5;
const GOAL_PERCENT = 50;
const MEMORY = { requests: 20_000, contexts: 50, rounds: 3, goal: 1.5 };

/** A stand-in of KurrentDB to BullMQ's jobs in Redis, through the relay as it ships, with its log at the default level. */
export const eventstore: Scenario = async (options) => {
  await compileProgram();
  return await measureParts(options, {
    throughput: () => throughput(options),
    memory: () => memory(options),
  });
};

/** The event store and Redis are processes of their own, on either side of what is measured. */
class Stage {
  readonly #store: KurrentDb;
  readonly #server: RedisServer;
  readonly #redis: Redis;

  constructor(store: KurrentDb, server: RedisServer) {
    this.#store = store;
    this.#server = server;
    this.#redis = new Redis(server.url);
  }

  /** Milliseconds until every job was there. */
  async raw(count: number): Promise<number> {
    await this.#redis.flushall();
    const { stdout } = await promisify(execFile)(process.execPath, [RAW, String(this.#server.port), String(count)]);
    await this.#require(count, 1);
    return Number(stdout);
  }

  /** The same of the relay, from when it is about to read; and its memory. */
  async relay(count: number, contexts: number): Promise<{ readonly ms: number; readonly rssMb: number }> {
    await this.#redis.flushall();
    const where = { storeUrl: this.#store.url, redisPort: this.#server.port, folder: this.#store.folder };
    await using relay = await startRequestRelay({ ...where, contexts });
    const startedMs = await until("the relay is about to read", () => relay.runningSinceMs());
    const endedMs = await until(
      "every job is there",
      async () => (await this.#count(contexts)) >= count && Date.now(),
      120_000,
    );
    await this.#require(count, contexts);
    return { ms: endedMs - startedMs, rssMb: relay.peakRssMb() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis.disconnect();
    await Promise.all([this.#store[Symbol.asyncDispose](), this.#server[Symbol.asyncDispose]()]);
  }

  async #count(contexts: number): Promise<number> {
    const lists = Array.from({ length: contexts }, (_, number) => `bull:${queueAt(number)}:wait`);
    const lengths = await Promise.all(lists.map((list) => this.#redis.llen(list)));
    return lengths.reduce((sum, length) => sum + length, 0);
  }

  async #require(wanted: number, contexts: number): Promise<void> {
    const count = await this.#count(contexts);
    if (count !== wanted) throw new Error(`${count} jobs of ${wanted} are there: no figure can be given`);
  }
}

async function openStage(count: number, contexts: number): Promise<Stage> {
  const [store, server] = await Promise.all([startKurrentDb(), startRedis(["--maxmemory-policy", "noeviction"])]);
  await store.seed(eventsOf(count, contexts));
  return new Stage(store, server);
}

async function throughput({ say, scale }: ScenarioOptions): Promise<Figure[]> {
  const count = Math.ceil(REQUESTS * scale);
  await using stage = await openStage(count, 1);
  const spent: Record<"raw" | "ours", number[]> = { raw: [], ours: [] };
  const run = { raw: () => stage.raw(count), ours: async () => (await stage.relay(count, 1)).ms };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of round % 2 === 0 ? (["raw", "ours"] as const) : (["ours", "raw"] as const)) {
      const ms = await run[name]();
      if (round > 0) spent[name].push(ms);
      say(`  ${name}: ${Math.round((count * 1_000) / ms)} jobs/s`);
    }
  }
  const perSecond = (ms: readonly number[]) => (count * 1_000) / bestHalf(ms);
  const [raw, ours] = [perSecond(spent.raw), perSecond(spent.ours)];
  return [
    measured("addBulk alone", raw, "jobs/s"),
    measured("relay", ours, "jobs/s"),
    atLeast("relay / addBulk alone", (ours / raw) * 100, "%", GOAL_PERCENT),
  ];
}

/** The same number of requests, of one context or of many. */
async function memory({ say, scale }: ScenarioOptions): Promise<Figure[]> {
  const count = Math.ceil(MEMORY.requests * scale);
  const peaks: Record<number, number[]> = { 1: [], [MEMORY.contexts]: [] };
  for (const contexts of [1, MEMORY.contexts]) {
    await using stage = await openStage(count, contexts);
    for (let round = 0; round < MEMORY.rounds; round += 1) {
      const { rssMb } = await stage.relay(count, contexts);
      peaks[contexts]?.push(rssMb);
      say(`  ${contexts} contexts: ${Math.round(rssMb)} MB`);
    }
  }
  const [one, many] = [1, MEMORY.contexts].map((contexts) => Math.max(...(peaks[contexts] ?? []))) as [number, number];
  return [
    measured("peak RSS of one context", one, "MB"),
    measured(`peak RSS of ${MEMORY.contexts} contexts`, many, "MB"),
    atMost(`${MEMORY.contexts} contexts / one`, many / one, "x", MEMORY.goal),
  ];
}

function bestHalf(ms: readonly number[]): number {
  const best = ms.toSorted((a, b) => a - b).slice(0, Math.ceil(ms.length / 2));
  return best.reduce((sum, one) => sum + one, 0) / best.length;
}
