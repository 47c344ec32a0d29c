import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { Queue } from "bullmq";
import { type RedisServer, startRedis } from "../../test/servers/redis.ts";
import { until } from "../../test/servers/until.ts";
import { isRelayError } from "../core/errors.ts";
import type { RequestQueue } from "../ports/request-queue.ts";
import { bullmqRequestQueue } from "../publishers/bullmq/request-queue.ts";
import { memoryEventLog } from "../testing/memory-event-log.ts";
import { createRequestRelay } from "./create-request-relay.ts";

let server: RedisServer;
let queue: RequestQueue;

before(async () => {
  server = await startRedis(["--maxmemory-policy", "noeviction"]);
  queue = bullmqRequestQueue({ hosts: [`127.0.0.1:${server.port}`] });
});

after(async () => {
  await queue.close();
  await server[Symbol.asyncDispose]();
});

function created(requestId: string, metadata: object = { intent: "outbox", tenant: "core" }) {
  return { id: randomUUID(), type: "PayoutCreated.v1", data: { id: requestId }, metadata: { ...metadata } };
}

async function waiting(name: string): Promise<number> {
  const bull = new Queue(name, { connection: { host: "127.0.0.1", port: server.port } });
  const count = await bull.getWaitingCount();
  await bull.close();
  return count;
}

test("E1 E5 E9 a relay in a process of one's own: many contexts, drained once, then live, handed over at the stop", async () => {
  const log = memoryEventLog();
  for (const context of ["pay.out", "mail.out"]) await log.append(`${context}.request-core-1`, null, [created("1")]);
  const heard: string[] = [];
  const options = {
    log,
    queue,
    contexts: ["pay.out", { name: "mail.out", queue: "mails", namespace: "mail" }],
    listener: {
      dispatched: (group: { namespace: string }, _: unknown, job: { requestId: string }) =>
        void heard.push(`${group.namespace} ${job.requestId}`),
    },
  };
  assert.deepEqual(await createRequestRelay(options).drain(), { dead: 0, elsewhere: [] });
  assert.deepEqual([await waiting("pay.out"), await waiting("mails")], [1, 1]);
  const relay = createRequestRelay(options);
  relay.start();
  await log.append("pay.out.request-core-2", null, [created("2")]);
  await until("the live one is there", async () => (await waiting("pay.out")) === 2);
  await relay.stop();
  const again = createRequestRelay(options);
  assert.deepEqual(await again.drain(), { dead: 0, elsewhere: [] }, "the lease is released");
  assert.deepEqual(heard.sort(), ["mail 1", "pay.out 1", "pay.out 2"]);
});

test("E1 E5 an unreachable log is reported, and reading continues from the checkpoint once it is back", async () => {
  const log = memoryEventLog();
  const states: string[] = [];
  const listener = {
    turned: (_: unknown, state: string, why: { code: string } | null) =>
      void states.push(why === null ? state : `${state} ${why.code}`),
  };
  const relay = createRequestRelay({ log, queue, contexts: ["ops.task"], start: "beginning", listener });
  relay.start();
  await until("it runs", () => states.includes("running"));
  log.fail("the store is away");
  await until("it says so", () => states.includes("broken LOG_UNREACHABLE"));
  log.fail(null);
  await log.append("ops.task.request-core-1", null, [created("1")]);
  await until("the request is there", async () => (await waiting("ops.task")) === 1);
  await relay.stop();
  assert.equal(states.at(-1), "stopped");
});

test("E2 E3 one that cannot become a job is counted and kept, and the others continue", async () => {
  const log = memoryEventLog();
  await log.append("desk.call.request-core-1", null, [
    created("1", { intent: "outbox", tenant: "a{b}" }),
    created("1"),
  ]);
  const relay = createRequestRelay({ log, queue, contexts: ["desk.call"] });
  assert.deepEqual(await relay.drain(), { dead: 1, elsewhere: [] });
  assert.equal(await waiting("desk.call"), 1);
  assert.throws(
    () => createRequestRelay({ log, queue, contexts: ["nonsense"] }),
    (error) => isRelayError(error, "CONFIG_INVALID"),
  );
});

test("G2 E9 a drain beside a relay that has the context says so and ends, and waits for one that has died", async () => {
  const log = memoryEventLog();
  await log.append("pay.back.request-core-1", null, [created("1")]);
  const options = { log, queue, contexts: ["pay.back"], leaseMs: 300 };
  const other = createRequestRelay(options);
  other.start();
  await until("the other has it", async () => (await waiting("pay.back")) === 1);
  assert.deepEqual(await createRequestRelay(options).drain(), { dead: 0, elsewhere: ["pay.back"] });
  await other.stop();
  const [group, lost] = [
    { context: "pay", aggregate: "back", namespace: "n", queue: "q", jobName: "j", markerMs: 1 },
    "dead",
  ];
  assert.ok(await queue.acquire(group, lost, 200));
  assert.deepEqual(await createRequestRelay(options).drain(), { dead: 0, elsewhere: [] });
});
