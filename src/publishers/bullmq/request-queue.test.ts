import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError } from "../../core/errors.ts";
import type { RequestBatch, RequestGroup, RequestQueue } from "../../ports/request-queue.ts";
import { requestContext } from "../../requests/request-names.ts";
import { bullmqRequestQueue } from "./request-queue.ts";

const LEASE_MS = 5_000;
let server: RedisServer;
let redis: Redis;
let queue: RequestQueue;
let group: RequestGroup;

before(async () => {
  server = await startRedis(["--maxmemory-policy", "noeviction"]);
  redis = new Redis(server.url);
  redis.on("error", () => {});
});

after(async () => {
  redis.disconnect();
  await queue.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await queue?.close();
  await redis.flushall();
  queue = open();
  group = {
    ...requestContext("payment.payout", "pay"),
    queue: "payouts",
    jobName: "execute-request",
    markerMs: 60_000,
  };
});

function open(more: object = {}): RequestQueue {
  return bullmqRequestQueue({ hosts: [`127.0.0.1:${server.port}`], ...more });
}

async function lease(owner = "one") {
  const won = await queue.acquire(group, owner, LEASE_MS);
  assert.ok(won !== null);
  return won;
}

function batchOf(after: string | null, position: string, ids: readonly string[], delayMs = 0): RequestBatch {
  const jobs = ids.map((eventId) => ({ eventId, tenant: "core", requestId: `r-${eventId}`, delayMs }));
  return { jobs, dead: [], after, position };
}

async function jobs() {
  const bull = new Queue(group.queue, { connection: { host: "127.0.0.1", port: server.port } });
  try {
    return await bull.getJobs(["waiting", "delayed", "completed"], 0, -1, true);
  } finally {
    await bull.close();
  }
}

test("E3 E4 a job is a reference with the event's id, made once; marker and checkpoint have their names", async () => {
  const ids = [randomUUID(), randomUUID()];
  const mine = await lease();
  const first = await queue.dispatch(group, mine, batchOf(null, "1/1", ids));
  assert.deepEqual(first, { isNew: [true, true], deadCount: null });
  const again = await queue.dispatch(group, mine, batchOf("1/1", "2/2", [ids[1]!, ids[1]!, randomUUID()]));
  assert.deepEqual(again.isNew, [false, false, true]);
  const added = await jobs();
  assert.deepEqual(
    added.slice(0, 2).map(({ data, id, name, opts }) => ({ data, id, name, attempts: opts.attempts })),
    ids.map((id) => ({ data: { tenant: "core", requestId: `r-${id}` }, id, name: "execute-request", attempts: 1 })),
  );
  assert.equal(added.length, 3);
  assert.equal(await redis.get(`pay:v1:{core}:dispatched:${ids[0]}`), "1");
  const ttl = await redis.pttl(`pay:v1:{core}:dispatched:${ids[0]}`);
  assert.ok(ttl > 50_000 && ttl <= 60_000, String(ttl));
  assert.equal(await redis.get("payment.payout.relay.checkpoint"), "2/2");
});

test("E4 a job that a worker has done and removed is not added again: its marker is there since it was", async () => {
  const id = randomUUID();
  await queue.close();
  queue = open({ removeOnComplete: true });
  const mine = await lease();
  await queue.dispatch(group, mine, batchOf(null, "1", [id]));
  let done = 0;
  const connection = { host: "127.0.0.1", port: server.port, maxRetriesPerRequest: null };
  const worker = new Worker(group.queue, async () => done++, { connection });
  await until("the job is done and gone", async () => done === 1 && (await jobs()).length === 0);
  const again = await queue.dispatch(group, mine, batchOf("1", "2", [id]));
  await worker.close();
  assert.deepEqual([again.isNew, (await jobs()).length, done], [[false], 0, 1]);
});

test("E4 a job that cannot be added leaves neither marker nor checkpoint, and is added once it can be", async () => {
  const id = randomUUID();
  const mine = await lease();
  await redis.set("bull:payouts:wait", "a key of another type");
  await assert.rejects(
    queue.dispatch(group, mine, batchOf(null, "1", [id])),
    (error) => isRelayError(error, "PUBLISH_FAILED") && /WRONGTYPE/.test(error.message),
  );
  assert.deepEqual(
    [await redis.exists(`pay:v1:{core}:dispatched:${id}`), await redis.get("payment.payout.relay.checkpoint")],
    [0, null],
  );
  await redis.del("bull:payouts:wait");
  assert.deepEqual((await queue.dispatch(group, mine, batchOf(null, "1", [id]))).isNew, [true]);
});

test("E4 a job that another client added under the event's id, done or not, is marked and not added again", async () => {
  const [waiting, half] = [randomUUID(), randomUUID()];
  const bull = new Queue(group.queue, { connection: { host: "127.0.0.1", port: server.port } });
  await bull.add("execute-request", { tenant: "core", requestId: "r" }, { jobId: waiting });
  await bull.close();
  await redis.hset(`bull:payouts:${half}`, {
    name: "execute-request",
    data: "{}",
    opts: "{}",
    timestamp: 1,
    delay: 0,
    priority: 0,
  });
  await queue.dispatch(group, await lease(), batchOf(null, "1", [waiting, half, randomUUID()]));
  assert.equal((await redis.keys("pay:v1:{core}:dispatched:*")).length, 3);
  assert.equal(await redis.llen("bull:payouts:wait"), 3);
});

test("E4 a full Redis takes nothing of a batch, and the reason says so", async () => {
  const mine = await lease();
  await redis.config("SET", "maxmemory", "1");
  const refused = await queue
    .dispatch(group, mine, batchOf(null, "1", [randomUUID()]))
    .catch((error: unknown) => error);
  await redis.config("SET", "maxmemory", "0");
  assert.match(String(refused), /OOM/);
  assert.deepEqual([(await jobs()).length, await redis.get("payment.payout.relay.checkpoint")], [0, null]);
});

test("E4 E9 a relay that lost its lease dispatches nothing, however late it wakes", async () => {
  const zombie = await lease("zombie");
  assert.equal(await queue.acquire(group, "other", LEASE_MS), null);
  await redis.del("payment.payout.relay.checkpoint:lease");
  const next = await lease("other");
  await queue.dispatch(group, next, batchOf(null, "1", [randomUUID()]));
  const late = queue.dispatch(group, zombie, batchOf(null, "1", [randomUUID()]));
  await assert.rejects(late, (error) => isRelayError(error, "FENCED"));
  await assert.rejects(queue.renew(group, zombie, LEASE_MS), (error) => isRelayError(error, "FENCED"));
  await queue.release(group, zombie);
  await queue.renew(group, next, LEASE_MS);
  assert.equal((await jobs()).length, 1);
});

test("E5 after Redis lost its last writes, the log is read again from its position; after it lost all data, that is reported", async () => {
  const mine = await lease();
  await queue.dispatch(group, mine, batchOf(null, "1", [randomUUID()]));
  await queue.dispatch(group, mine, batchOf("1", "2", [randomUUID()]));
  await redis.set("payment.payout.relay.checkpoint", "1");
  const behind = queue.dispatch(group, mine, batchOf("2", "3", [randomUUID()]));
  await assert.rejects(behind, (error) => isRelayError(error, "LEASE_LOST"));
  await redis.flushall();
  const empty = queue.dispatch(group, mine, batchOf("2", "3", [randomUUID()]));
  await assert.rejects(empty, (error) => isRelayError(error, "QUEUE_FORGOT"));
  assert.equal((await jobs()).length, 0);
});

test("E6 a request that may not be tried before a time is a delayed job", async () => {
  const id = randomUUID();
  await queue.dispatch(group, await lease(), batchOf(null, "1", [id], 60_000));
  const [job] = await jobs();
  assert.deepEqual([job?.id, job?.opts.delay, await redis.zcard("bull:payouts:delayed")], [id, 60_000, 1]);
});

test("E3 what cannot become a job is kept by its event's id with the reason, and counted", async () => {
  const dead = {
    eventId: randomUUID(),
    type: "X",
    stream: "s",
    revision: "1",
    position: "1",
    reason: "no id",
    at: "t",
  };
  const { deadCount } = await queue.dispatch(group, await lease(), { ...batchOf(null, "1", []), dead: [dead] });
  assert.equal(deadCount, 1);
  assert.deepEqual(JSON.parse((await redis.hget("payment.payout.relay.checkpoint:dead", dead.eventId))!), dead);
});

test("E4 killed and back, Redis has job, marker and checkpoint of a batch together; nothing is visible before", async () => {
  const mine = await lease();
  await queue.dispatch(group, mine, batchOf(null, "1", [randomUUID()]));
  await server.kill();
  await assert.rejects(queue.ping(), (error) => isRelayError(error, "DESTINATION_UNREACHABLE"));
  await server.restart();
  await until("Redis is back", () =>
    queue.ping().then(
      () => true,
      () => false,
    ),
  );
  assert.equal((await jobs()).length, 1);
  assert.deepEqual((await queue.dispatch(group, mine, batchOf("1", "2", [randomUUID()]))).isNew, [true]);
});
