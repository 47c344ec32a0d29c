import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Redis } from "ioredis";
import { DYNAMODB_ENVIRONMENT, type DynamoDb, startDynamoDb } from "../../../test/servers/dynamodb.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { type RedisServer, startRedis } from "../../../test/servers/redis.ts";
import { systemClock, systemRandom } from "../../core/clock.ts";
import { type DynamoDbLink, dynamoDbLink } from "../../dynamodb/dynamodb-link.ts";
import { CheckpointTable, createCheckpointTable } from "../../dynamodb-runner/checkpoints.ts";
import { OwnerWatch } from "../../dynamodb-runner/lease.ts";
import { leavePlan, playRound } from "../../operations/replay/plan-round.ts";
import type { PlanSources } from "../../operations/replay/plan-sources.ts";
import type { RequestQueue } from "../../ports/request-queue.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import { bullmqRequestQueue } from "../../publishers/bullmq/request-queue.ts";
import { executeLockKey, requestContext } from "../../requests/request-names.ts";
import { takeLock } from "../../worker/execute-lock.ts";
import { isAllowed, type LeaseSubject, leaseContract } from "./lease-contract.ts";

const LEASE_MS = 60_000;

function prove(name: string, open: () => Promise<LeaseSubject>): void {
  const harness = { capabilities: null, open };
  for (const check of leaseContract) test(`${name}: ${check.rule}`, () => check.run(harness));
}

let contexts = 0;

function nextContext() {
  contexts += 1;
  return requestContext(`lease${contexts}.request`);
}

describe("leases in Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  let queue: RequestQueue;
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

  prove("E4 the relay of one context", async () => {
    const context = nextContext();
    const group = { ...context, queue: "jobs", jobName: "execute", markerMs: LEASE_MS };
    return {
      async take() {
        const lease = await queue.acquire(group, randomUUID(), LEASE_MS);
        if (lease === null) return null;
        return {
          write: () => isAllowed(queue.renew(group, lease, LEASE_MS)),
          release: () => queue.release(group, lease),
        };
      },
      expire: async () => void (await redis.del(`${context.context}.${context.aggregate}.relay.checkpoint:lease`)),
      close: async () => {},
    };
  });

  prove("the execute lock of a request", async () => {
    const context = nextContext();
    const locks: { release(): Promise<void> }[] = [];
    const place = { redis, context, clock: systemClock, random: systemRandom, lockMs: LEASE_MS };
    return {
      async take() {
        const taking = await takeLock(place, "tenant", "request");
        if (taking.kind === "busy") return null;
        const { lock } = taking;
        locks.push(lock);
        return { write: () => lock.isHeld(), release: () => lock.release() };
      },
      expire: async () => void (await redis.del(executeLockKey(context, "tenant", "request"))),
      close: async () => void (await Promise.all(locks.map((lock) => lock.release()))),
    };
  });
});

describe("leases in PostgreSQL", () => {
  let server: PostgresServer;
  let database: Database;
  before(async () => {
    server = await startPostgres({ version: 18 });
    database = openDatabase({ url: server.url });
    await migrateUp(database);
  });
  after(async () => {
    await database.close();
    await server[Symbol.asyncDispose]();
  });

  async function sql(text: string) {
    return await statement(
      database.pool,
      { context: database.errorContext("testing"), statementTimeoutMs: 5_000 },
      text,
    );
  }

  const sources: PlanSources = { pipelines: [], waiting: () => null, log: () => null, whyNot: () => "no source" };

  prove("the runner of a plan", async () => {
    const { replayPlans } = database.tables;
    const progress = { waiting: 1, sent: 0, done: 0, failed: 0, left: 0 };
    const [row] = await sql(
      `insert into ${replayPlans} (action, subject, filter, state, created_by, items, breakdown)
       values ('replay', 'dead', '', 'running', 'test', 1, '${JSON.stringify({ progress })}') returning id`,
    );
    const id = row?.[0] ?? assert.fail("no plan was written");
    return {
      async take() {
        const runner = randomUUID();
        const play = async () => (await playRound(database, id, runner, 0, sources)) !== null;
        return (await play()) ? { write: play, release: () => leavePlan(database, id, runner) } : null;
      },
      expire: async () =>
        void (await sql(`update ${replayPlans} set runner_until = now() - interval '1 s' where id = '${id}'`)),
      close: async () => {},
    };
  });
});

describe("leases in DynamoDB", () => {
  const table = "leases";
  let server: DynamoDb;
  let link: DynamoDbLink;
  before(async () => {
    Object.assign(process.env, DYNAMODB_ENVIRONMENT);
    server = await startDynamoDb();
    link = dynamoDbLink({ endpoint: server.endpoint });
    await createCheckpointTable(link, table);
  });
  after(async () => {
    await link.close();
    await server[Symbol.asyncDispose]();
  });

  prove("the reader of a shard", async () => {
    const relay = randomUUID();
    let nowMs = 0;
    const watch = new OwnerWatch({ ...systemClock, monotonicMs: () => nowMs }, LEASE_MS);
    const fresh = { relay, shard: "s", stream: "arn", position: null, isDone: false, lost: null, owner: null };
    const rowOf = async (checkpoints: CheckpointTable) =>
      (await checkpoints.ofRelay(relay))[0] ?? { ...fresh, fence: 0, beat: 0 };
    return {
      async take() {
        const owner = randomUUID();
        const checkpoints = new CheckpointTable(link, table, owner);
        const row = await rowOf(checkpoints);
        const grant = watch.isFree(row, owner) ? await checkpoints.take(row) : null;
        return grant && { write: () => checkpoints.renew(grant), release: () => checkpoints.release(grant) };
      },
      async expire() {
        watch.isFree(await rowOf(new CheckpointTable(link, table, "")), "");
        nowMs += LEASE_MS + 1;
      },
      close: async () => {},
    };
  });
});
