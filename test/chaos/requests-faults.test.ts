import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { type ServiceProcess, startService } from "../e2e/service-process.ts";
import { freePort } from "../servers/free-port.ts";
import { type KurrentDb, startKurrentDb } from "../servers/kurrentdb.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import { until } from "../servers/until.ts";

// Faults of the relay's neighbours that a kill does not make: they forget, freeze or break off.
let store: KurrentDb;
let server: RedisServer;
let redis: Redis;
const LEASE_MS = 2_000;

before(async () => {
  const flags = ["--maxmemory-policy", "noeviction", "--auto-aof-rewrite-percentage", "0"];
  [store, server] = await Promise.all([startKurrentDb(), startRedis(flags)]);
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
  redis.on("error", () => {});
});

after(async () => {
  redis.disconnect();
  await Promise.all([store[Symbol.asyncDispose](), server[Symbol.asyncDispose]()]);
});

async function relay(context: string, more: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  return startService(["run"], {
    KURRENTDB_URL: store.url,
    OUTBOX_CONTEXTS: context,
    OUTBOX_DESTINATION: `bullmq+redis://127.0.0.1:${server.port}/0`,
    LEASE_TIMEOUT: `${LEASE_MS}ms`,
    PORT: String(await freePort()),
    ...more,
  });
}

async function ask(context: string, count: number): Promise<string[]> {
  const events = Array.from({ length: count }, () => {
    const id = randomUUID();
    const metadata = { tenant: "core", intent: "outbox" };
    return { stream: `${context}.request-core-${id}`, id, type: "PayoutCreated.v1", data: { id }, metadata };
  });
  await store.seed(events);
  return events.map(({ id }) => id);
}

/** Each time that a job was added, by the queue's own stream of events. */
async function added(context: string): Promise<string[]> {
  const entries = await redis.xrange(`bull:${context}:events`, "-", "+");
  return entries.flatMap(([, [, event, , jobId]]) => (event === "added" && jobId !== undefined ? [jobId] : []));
}

const waiting = (context: string) => redis.llen(`bull:${context}:wait`);

async function dispatched(context: string, count: number): Promise<void> {
  await until(`${count} jobs wait`, async () => (await waiting(context)) >= count);
}

async function halted(service: ServiceProcess, code: string): Promise<void> {
  await service.logged(`that it halted by ${code}`, (it) => it.state === "halted" && it.code === code);
  await service.becomes("unhealthy");
}

test("E1 E4 subscriptions that are dropped amid thousands of events, again and again, cost no event and double none", async () => {
  const ids = await ask("drop.payout", 4_000);
  await using running = await relay("drop.payout");
  const isMoving = async (sent: number) =>
    (await store.figures()).sent > sent || (await waiting("drop.payout")) === 4_000;
  for (let drops = 0; drops < 6; drops += 1) {
    const { sent } = await store.figures();
    await until("more was sent", () => isMoving(sent)).catch((cause: unknown) => {
      throw new Error(`nothing moves any more:\n${running.stderr().slice(-2_000)}`, { cause });
    });
    await store.dropSubscriptions(drops % 2 === 0 ? "error" : "end");
  }
  await dispatched("drop.payout", 4_000);
  assert.deepEqual((await added("drop.payout")).toSorted(), ids.toSorted());
  await running.becomes("healthy");
});

test("E4 E5 a Redis that lost everything halts the relay and its stand-by; what the log has is queued again when a person wants it", async () => {
  const ids = await ask("flush.payout", 50);
  await using one = await relay("flush.payout");
  await dispatched("flush.payout", 50);
  await using two = await relay("flush.payout");
  await two.logged("that it stands by", ({ state }) => state === "standby");
  await redis.flushall();
  ids.push(...(await ask("flush.payout", 5)));
  await Promise.all([halted(one, "QUEUE_FORGOT"), halted(two, "QUEUE_FORGOT")]);
  assert.deepEqual(await added("flush.payout"), []);
  await using three = await relay("flush.payout");
  await dispatched("flush.payout", 55);
  assert.deepEqual((await added("flush.payout")).toSorted(), ids.toSorted());
  await three.becomes("healthy");
});

test("E5 with a copy of the checkpoint in the event store a relay that starts later notices it too", async () => {
  const copied = { REQUEST_CHECKPOINTS: "eventstore" };
  await ask("copied.payout", 20);
  await using one = await relay("copied.payout", copied);
  await dispatched("copied.payout", 20);
  // By its type: the stream's metadata, which name it too, are written first.
  const isCopied = () => readFileSync(join(store.folder, "events"), "utf8").includes("RelayCheckpoint.v1");
  await until("the checkpoint is copied", isCopied);
  one.kill("SIGKILL");
  await one.ended;
  await redis.flushall();
  await using two = await relay("copied.payout", copied);
  await halted(two, "QUEUE_FORGOT");
  assert.deepEqual(await added("copied.payout"), []);
});

test("E4 E5 a Redis that came back with an older state gets the jobs again that it forgot, and no other", async () => {
  const before = await ask("older.payout", 100);
  await using running = await relay("older.payout");
  await dispatched("older.payout", 100);
  await server.kill();
  const [folder, copy] = [join(server.folder, "appendonlydir"), join(server.folder, "copy")];
  cpSync(folder, copy, { recursive: true });
  await server.restart();
  const forgotten = await ask("older.payout", 100);
  await dispatched("older.payout", 200);
  await server.kill();
  rmSync(folder, { recursive: true });
  cpSync(copy, folder, { recursive: true });
  await server.restart();
  const behind = await ask("older.payout", 10);
  await dispatched("older.payout", 210);
  assert.deepEqual((await added("older.payout")).toSorted(), [...before, ...forgotten, ...behind].toSorted());
  await running.becomes("healthy");
});

test("E4 E5 a checkpoint that was deleted by hand halts a relay at work; the next one reads from the beginning and doubles nothing", async () => {
  const ids = await ask("hand.payout", 50);
  await using one = await relay("hand.payout");
  await dispatched("hand.payout", 50);
  await redis.del("hand.payout.relay.checkpoint");
  const more = await ask("hand.payout", 5);
  await halted(one, "QUEUE_FORGOT");
  one.kill("SIGTERM");
  await one.ended;
  await using two = await relay("hand.payout");
  await dispatched("hand.payout", 55);
  assert.deepEqual((await added("hand.payout")).toSorted(), [...ids, ...more].toSorted());
  await two.becomes("healthy");
});

test("E1 E4 a Redis that is frozen beyond all patience, full, read-only or without its scripts gets each job once when it can take them", async () => {
  const ids = await ask("refused.payout", 20);
  await using running = await relay("refused.payout");
  await dispatched("refused.payout", 20);
  const troubles: [() => Promise<unknown>, () => Promise<unknown>, RegExp | null][] = [
    [() => server.pause(), async () => server.resume(), /no answer/],
    [() => redis.config("SET", "maxmemory", "1"), () => redis.config("SET", "maxmemory", "0"), /OOM/],
    [() => redis.replicaof("127.0.0.1", "1"), () => redis.replicaof("NO", "ONE"), /READONLY/],
    [() => redis.script("FLUSH"), async () => {}, null],
  ];
  for (const [begin, end, said] of troubles) {
    await begin();
    ids.push(...(await ask("refused.payout", 20)));
    if (said !== null) await until(`it says ${said}`, async () => said.test((await running.get("/health")).body));
    await end();
    await dispatched("refused.payout", ids.length);
  }
  assert.deepEqual((await added("refused.payout")).toSorted(), ids.toSorted());
  await running.becomes("healthy");
});

test("E1 an event store that lost its last events halts the relay, at work or started anew", async () => {
  await ask("lost.payout", 50);
  const file = join(store.folder, "events");
  const older = readFileSync(file);
  await using one = await relay("lost.payout");
  await dispatched("lost.payout", 50);
  await ask("lost.payout", 20);
  await dispatched("lost.payout", 70);
  await store.kill();
  writeFileSync(file, older);
  await store.restart();
  await halted(one, "LOG_LOST");
  await using two = await relay("lost.payout");
  one.kill("SIGTERM");
  await halted(two, "LOG_LOST");
  assert.equal(await waiting("lost.payout"), 70);
});
