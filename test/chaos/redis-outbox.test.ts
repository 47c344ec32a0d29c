import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { Redis } from "ioredis";
import { type NewRedisEvent, redisOutbox } from "../../src/redis-outbox.ts";
import { describeVerdict, judge, type LedgerRow } from "../e2e/checker.ts";
import { createFleet, type RelayFleet } from "../e2e/relay-fleet.ts";
import { programPath } from "../servers/program-path.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import { type Sink, startSink } from "../servers/sink.ts";
import { until } from "../servers/until.ts";

const NAME = "shop";
const EVENTS = 5_000;
const KEYS = 100;
const RELAYS = 3;
/** Events in flight of one relay: small, so that a bound made of it says something. */
const IN_FLIGHT_MAX = 60;
const BATCH = 10;
const AHEAD_MAX = 300;
const DRAIN_MS = 120_000;

test("D7 A3 B4: three relays on one Redis outbox, kill -9 of relays and of Redis: 0 lost, in order per key, duplicates only what was in flight", async (t) => {
  await using started = new AsyncDisposableStack();
  const redis = started.use(await startRedis());
  const sink = started.use(await startSink());
  const fleet = started.use(newFleet(redis, sink));
  for (let n = 1; n <= RELAYS; n += 1) await fleet.start(`relay-${n}`);
  const writing = writeAll(redis.url, new Pace(sink));
  const blows = { relays: 0, servers: 0 };
  for (let arrivals = 500; arrivals <= 4_000; arrivals += 700) {
    await sink.waitFor(arrivals, DRAIN_MS);
    if (blows.relays <= blows.servers) {
      blows.relays += 1;
      await fleet.processes.find(({ isRunning }) => isRunning)?.kill();
      await fleet.start(`relay-${RELAYS + blows.relays}`);
    } else {
      blows.servers += 1;
      await redis.restart();
    }
  }
  const ledger = await writing;
  const admin = new Redis(redis.url);
  started.defer(() => admin.disconnect());
  await until("nothing waits", async () => (await admin.zcard(`{outbox:${NAME}}:pending`)) === 0, DRAIN_MS);
  await Promise.all(fleet.processes.filter(({ isRunning }) => isRunning).map((relay) => relay.terminate()));

  const delivered = new Set(await admin.zrange(`{outbox:${NAME}}:delivered`, "0", "-1"));
  const outbox = ledger.map(({ id }) => ({ id, delivered: delivered.has(id) }));
  const verdict = judge(ledger, await sink.arrivals(), outbox);
  t.diagnostic(`${describeVerdict(verdict)}; ${blows.relays} relays and ${blows.servers} servers killed`);
  const { lost, unknown, inversions, corrupt, unmarked, markedInVain } = verdict;
  assert.deepEqual(
    { lost, unknown, inversions, corrupt, unmarked, markedInVain },
    { lost: [], unknown: [], inversions: [], corrupt: [], unmarked: [], markedInVain: [] },
    describeVerdict(verdict),
  );
  assert.equal(verdict.events, EVENTS);
  assert.ok(blows.relays >= 3 && blows.servers >= 3);
  const duplicatesMax = (blows.relays + blows.servers * RELAYS) * IN_FLIGHT_MAX;
  assert.ok(verdict.duplicates <= duplicatesMax, `${verdict.duplicates} duplicates, at most ${duplicatesMax}`);
  const leftovers = await Promise.all(["heads", "payloads"].map((what) => admin.hlen(`{outbox:${NAME}}:${what}`)));
  assert.deepEqual(leftovers, [0, 0], "a delivered event leaves nothing but its id");
});

test("D7 A3: a Redis that forgot its last writes loses these alone: the order of the rest holds and the relays go on", async (t) => {
  await using started = new AsyncDisposableStack();
  const redis = started.use(await startRedis());
  const sink = started.use(await startSink());
  const fleet = started.use(newFleet(redis, sink));
  for (let n = 1; n <= RELAYS; n += 1) await fleet.start(`relay-${n}`);
  const pace = new Pace(sink);
  const writing = writeAll(redis.url, pace);
  await sink.waitFor(1_000, DRAIN_MS);
  const file = appendOnlyFile(redis);
  const { size } = statSync(file);
  const before = pace.acknowledged.length;
  await sink.waitFor((await sink.arrivals()).length + 300, DRAIN_MS);
  await redis.kill();
  pace.isOver = true;
  const forgettable = new Set(pace.acknowledged.slice(Math.max(0, before - BATCH)));
  truncateSync(file, size);
  await redis.restart();
  const ledger = await writing;
  const admin = new Redis(redis.url);
  started.defer(() => admin.disconnect());
  await until("nothing waits", async () => (await admin.zcard(`{outbox:${NAME}}:pending`)) === 0, DRAIN_MS);
  await Promise.all(fleet.processes.filter(({ isRunning }) => isRunning).map((relay) => relay.terminate()));

  const verdict = judge(ledger, await sink.arrivals(), []);
  t.diagnostic(`${describeVerdict({ ...verdict, unmarked: [] })}; ${forgettable.size} appends could be forgotten`);
  assert.deepEqual([verdict.inversions, verdict.corrupt, verdict.unknown], [[], [], []], describeVerdict(verdict));
  assert.deepEqual(
    verdict.lost.filter((id) => !forgettable.has(id)),
    [],
    "what was written before or after must arrive",
  );
  assert.ok(forgettable.size > 2 * BATCH, "too few appends were forgotten to say anything");
  assert.ok(verdict.duplicates > 0, "no settle was forgotten: that proves nothing");
});

/** The file that grows; its base is written once. */
function appendOnlyFile({ folder }: RedisServer): string {
  const inside = join(folder, "appendonlydir");
  const name = readdirSync(inside).find((it) => it.endsWith(".incr.aof"));
  return join(inside, name ?? assert.fail("there is no append-only file"));
}

/** Keeps the writer only a little ahead of the relays, so that what is killed is killed amid its writes too. */
class Pace {
  readonly acknowledged: string[] = [];
  isOver = false;
  readonly #sink: Sink;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  async wait(): Promise<void> {
    const isNear = async () =>
      this.isOver || this.acknowledged.length < (await this.#sink.arrivals()).length + AHEAD_MAX;
    await until("the relays follow", isNear, DRAIN_MS);
  }
}

function newFleet(redis: RedisServer, sink: Sink): RelayFleet {
  return createFleet({
    databaseUrl: "",
    tables: [],
    sinkPort: sink.port,
    script: programPath(join(import.meta.dirname, "redis-outbox-process.ts")),
    variables: { REDIS_URL: redis.url, OUTBOX_NAME: NAME },
    lanes: 6,
    leaseMs: 2_500,
    limits: { batchSize: BATCH, inFlightEventsMax: IN_FLIGHT_MAX, pageRows: IN_FLIGHT_MAX },
    timing: { leaseMarginMs: 500, publishTimeoutMs: 1_500, balanceMs: 250, pollIntervalMs: 100 },
  });
}

/** Writes through the kills: an append whose answer did not come is repeated, and must not count twice. */
async function writeAll(url: string, pace: Pace): Promise<readonly LedgerRow[]> {
  const outbox = redisOutbox({ url, name: NAME });
  const ledger: LedgerRow[] = [];
  for (let first = 0; first < EVENTS; first += BATCH) {
    await pace.wait();
    const numbers = Array.from({ length: BATCH }, (_, index) => first + index);
    const events = numbers.map((number) => newEvent(number));
    await until("the outbox takes the events", () =>
      outbox.append(events).then(
        () => true,
        () => false,
      ),
    );
    for (const [index, { id, key, payload }] of events.entries()) {
      const sequence = Math.floor((first + index) / KEYS) + 1;
      ledger.push({ id, key: key ?? null, sequence, crc: crc32(payload) });
      pace.acknowledged.push(id);
    }
  }
  await outbox.close();
  return ledger;
}

function newEvent(number: number): NewRedisEvent {
  return { id: randomUUID(), type: "order", key: `key-${number % KEYS}`, payload: JSON.stringify({ number }) };
}
