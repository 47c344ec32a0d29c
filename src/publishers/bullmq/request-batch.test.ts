import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { isRelayError } from "../../core/errors.ts";
import type { RequestBatch, RequestGroup, RequestQueue } from "../../ports/request-queue.ts";
import { requestContext } from "../../requests/request-names.ts";
import { bullmqRequestQueue } from "./request-queue.ts";

const COUNT = 20;
let server: RedisServer;
let redis: Redis;
let queue: RequestQueue;
const group: RequestGroup = {
  ...requestContext("payment.payout", "pay"),
  queue: "payouts",
  jobName: "execute-request",
  markerMs: 60_000,
};

before(async () => {
  server = await startRedis(["--maxmemory-policy", "noeviction"]);
  redis = new Redis(server.url);
  queue = bullmqRequestQueue({ hosts: [`127.0.0.1:${server.port}`] });
});

after(async () => {
  redis.disconnect();
  await queue.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(() => redis.flushall());

const uuids = () => Array.from({ length: COUNT }, () => randomUUID() as string);

/** Names as people have them, so that every kind of character goes through. */
const requestIdOf = (eventId: string) => `r "ä\\ \u0001 😀 ${eventId.slice(0, 4)} %1`;

function batchOf(ids: readonly string[], delayMs = 0): RequestBatch {
  const jobs = ids.map((eventId) => ({ eventId, tenant: "core", requestId: requestIdOf(eventId), delayMs }));
  return { jobs, dead: [], after: null, position: "1" };
}

async function lease() {
  const won = await queue.acquire(group, "one", 5_000);
  assert.ok(won !== null);
  return won;
}

/** All that BullMQ keeps of a queue, without the times. */
async function contents(name: string, ids: readonly string[]) {
  const key = (part: string) => `bull:${name}:${part}`;
  const hashes = await Promise.all(ids.map((id) => redis.hgetall(key(id))));
  const events = await redis.xrange(key("events"), "-", "+");
  return {
    jobs: hashes.map(({ timestamp, ...hash }) => ({ ...hash, hasTime: Number(timestamp) > 1e12 })),
    wait: await redis.lrange(key("wait"), 0, -1),
    events: events.map(([, fields]) => fields),
    counter: await redis.get(key("id")),
    eventsMax: await redis.hget(key("meta"), "opts.maxLenEvents"),
    marker: await redis.zrange(key("marker"), "0", "-1", "WITHSCORES"),
  };
}

test("E3 E4 many jobs that are added at once are what BullMQ itself makes of them, to the last field", async () => {
  const ids = uuids();
  const bull = new Queue("theirs", { connection: { host: "127.0.0.1", port: server.port } });
  await bull.addBulk(
    ids.map((jobId) => ({
      name: group.jobName,
      data: { tenant: "core", requestId: requestIdOf(jobId) },
      opts: { jobId, attempts: 1, removeOnComplete: false, removeOnFail: false },
    })),
  );
  await bull.close();
  const { isNew } = await queue.dispatch(group, await lease(), batchOf(ids));
  assert.deepEqual(isNew, Array(COUNT).fill(true));
  assert.deepEqual(await contents("payouts", ids), await contents("theirs", ids));
  assert.equal((await redis.keys("pay:v1:{core}:dispatched:*")).length, COUNT);
});

test("E4 among many, those that are marked or there already are not added again, and a delayed one waits", async () => {
  const [marked, there, ...ids] = uuids();
  const bull = new Queue(group.queue, { connection: { host: "127.0.0.1", port: server.port } });
  await bull.add(group.jobName, {}, { jobId: there! });
  await bull.close();
  await redis.set(`pay:v1:{core}:dispatched:${marked}`, "1");
  const later = randomUUID();
  const batch = batchOf([marked!, there!, ...ids]);
  const jobs = [...batch.jobs, ...batchOf([later], 60_000).jobs];
  const { isNew } = await queue.dispatch(group, await lease(), { ...batch, jobs });
  assert.deepEqual([isNew[0], ...isNew.slice(2)], [false, ...ids.map(() => true), true]);
  assert.deepEqual(await redis.lrange("bull:payouts:wait", 0, -1), [there, ...ids].reverse());
  assert.deepEqual(await redis.zrange("bull:payouts:delayed", "0", "-1"), [later]);
  assert.equal((await redis.keys("pay:v1:{core}:dispatched:*")).length, COUNT + 1);
});

test("E4 a script that stops halfway leaves no marker without a job, and later every job is there once", async () => {
  const ids = uuids();
  const mine = await lease();
  // The job itself is stored by then, and not in any list.
  await redis.set("bull:payouts:events", "a key of another type");
  await assert.rejects(
    queue.dispatch(group, mine, batchOf(ids)),
    (error) => isRelayError(error, "PUBLISH_FAILED") && /WRONGTYPE/.test(error.message),
  );
  assert.deepEqual(await redis.keys("pay:v1:*"), []);
  assert.equal(await redis.get("payment.payout.relay.checkpoint"), null);
  await redis.del("bull:payouts:events");
  const { isNew } = await queue.dispatch(group, mine, batchOf(ids));
  assert.deepEqual(isNew, Array(COUNT).fill(true));
  assert.deepEqual((await redis.lrange("bull:payouts:wait", 0, -1)).toSorted(), ids.toSorted());
});

test("E4 a manual dispatch drops the transaction of a relay that has read before it", async () => {
  const ids = uuids();
  await lease();
  await redis.watch("payment.payout.relay.checkpoint:turns");
  assert.deepEqual(await queue.revive(group, batchOf(ids).jobs), Array(COUNT).fill(true));
  assert.equal(await redis.multi().set("late", "1").exec(), null);
  assert.equal(await redis.get("payment.payout.relay.checkpoint:turns"), "1");
});
