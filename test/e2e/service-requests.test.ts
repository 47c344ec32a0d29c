import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { type Job, Queue } from "bullmq";
import { Redis } from "ioredis";
import { freePort } from "../servers/free-port.ts";
import { type KurrentDb, startKurrentDb } from "../servers/kurrentdb.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import { until, untilEqual } from "../servers/until.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";

// The event store is a fake that speaks KurrentDB's protocol: no server can be had here.
let store: KurrentDb;
let server: RedisServer;
let redis: Redis;

before(async () => {
  [store, server] = await Promise.all([startKurrentDb(), startRedis(["--maxmemory-policy", "noeviction"])]);
  redis = new Redis(server.url);
  redis.on("error", () => {});
});

after(async () => {
  redis.disconnect();
  await Promise.all([store[Symbol.asyncDispose](), server[Symbol.asyncDispose]()]);
});

function environment(contexts: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const OUTBOX_DESTINATION = `bullmq+redis://127.0.0.1:${server.port}/0`;
  return { KURRENTDB_URL: store.url, OUTBOX_CONTEXTS: contexts, OUTBOX_DESTINATION, LEASE_TIMEOUT: "3s", ...more };
}

async function relay(contexts: string, more: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  return startService(["run"], environment(contexts, { PORT: String(await freePort()), ...more }));
}

/** As an application writes it: the command's ids in the metadata, and what is secret in the data. */
function request(context: string, requestId: string, tenant = "core") {
  const id = randomUUID();
  const correlationId = `cmd-${requestId}`;
  return {
    stream: `${context}.request-${tenant}-${requestId}`,
    id,
    type: "PayoutCreated.v1",
    data: { id: requestId, iban: "DE-SECRET-CANARY" },
    metadata: {
      correlationId,
      causationId: correlationId,
      source: `service://${context}`,
      tenant,
      eventId: id,
      intent: "outbox",
    },
  };
}

async function jobsOf(queue: string): Promise<Job[]> {
  const bull = new Queue(queue, { connection: { host: "127.0.0.1", port: server.port } });
  try {
    return await bull.getJobs(["waiting", "delayed", "completed", "failed"], 0, -1, true);
  } finally {
    await bull.close();
  }
}

const sample = (text: string, name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);

test("E1 E2 E3 E4 E5 E7 E8 from the append to a job: a reference, once, with its marker, checkpoint, log line and figures", async () => {
  const [one, two] = [request("payment.payout", "r-1"), request("payment.payout", "r-2", "acme-eu")];
  const other = { ...request("payment.payout", "r-1"), type: "PayoutApproved.v1", metadata: { tenant: "core" } };
  const foreign = request("payment.refund", "r-9");
  await store.seed([one, other, foreign]);
  await using running = await relay("payment.payout?namespace=pay&queue=payouts");
  await until("the first is there", async () => (await jobsOf("payouts")).length === 1);
  await store.seed([two]);
  await until("the second too", async () => (await jobsOf("payouts")).length === 2);
  const jobs = await jobsOf("payouts");
  assert.deepEqual(
    jobs.map(({ data, id, name, opts }) => ({ data, id, name, attempts: opts.attempts })),
    [one, two].map(({ data, id, metadata }) => ({
      data: { tenant: metadata.tenant, requestId: data.id },
      id,
      name: "execute-request",
      attempts: 1,
    })),
  );
  const everything = await redis.keys("*");
  assert.ok(everything.includes(`pay:v1:{acme-eu}:dispatched:${two.id}`), everything.join(" "));
  assert.ok(everything.includes("payment.payout.relay.checkpoint"));
  const line = await running.logged("the dispatch", (it) => it.eventId === two.id && it.outcome === "dispatched");
  const { causationId, context, correlationId, jobId, namespace, requestId, source, stream, tenant } = line;
  assert.deepEqual(
    { causationId, context, correlationId, jobId, namespace, requestId, source, stream, tenant },
    {
      causationId: "cmd-r-2",
      context: "payment.payout",
      correlationId: "cmd-r-2",
      jobId: two.id,
      namespace: "pay",
      requestId: "r-2",
      source: "service://payment.payout",
      stream: two.stream,
      tenant: "acme-eu",
    },
  );
  const figures = async () => {
    const { body } = await running.get("/metrics");
    return ["events_total", "dispatched_total", "skipped_total", "lag_ms"].map((name) =>
      sample(body, `outbox_${name}{namespace="pay"}`),
    );
  };
  await untilEqual("the figures follow", figures, [3, 2, 1, 0]);
  await running.becomes("healthy");
  await until("it is ready", async () => (await running.get("/readyz")).status === 200);
  for (const path of ["overview", "series", "logs", "doctor", "config"]) {
    assert.equal((await running.get(`/api/v1/${path}`)).status, 200, path);
  }
  running.kill("SIGTERM");
  assert.equal((await running.ended).code, 0);
  assert.doesNotMatch(running.stdout() + running.stderr() + JSON.stringify(jobs), /SECRET-CANARY/);
});

test("E2 E4 by the usual suffixes too, unless they are turned off; run again it adds nothing, and --once ends with what cannot become a job", async () => {
  const plain = { tenant: "core" };
  await store.seed([
    { ...request("shop.order", "1"), type: "OrderCreated", metadata: plain },
    { ...request("shop.order", "2"), type: "OrderQueued.v3", metadata: plain },
    { ...request("shop.order", "3"), type: "OrderCreatedLate", metadata: plain },
    { ...request("shop.order", "4"), data: { no: "id" } },
    { ...request("shop.order", "5"), type: "OrderNoted", metadata: "this is no JSON" },
    { ...request("shop.order", "6", "from-stream"), data: { id: 6 }, metadata: { intent: "outbox" } },
  ]);
  const byMetadata = await runCommand(
    ["run", "--once"],
    environment("shop.order?namespace=strict&queue=strict", { REQUEST_SUFFIXES: "none" }),
  );
  assert.match(byMetadata.stderr, /1 dispatched, 2 dead/, byMetadata.stderr);
  for (const key of await redis.keys("shop.order.relay.checkpoint*")) await redis.del(key);
  const env = environment("shop.order");
  const first = await runCommand(["run", "--once"], env);
  assert.deepEqual([first.code, /3 dispatched, 2 dead/.test(first.stderr)], [5, true], first.stderr);
  const jobs = await jobsOf("shop.order");
  assert.deepEqual(
    jobs.map(({ data }) => data as object),
    [
      { tenant: "core", requestId: "1" },
      { tenant: "core", requestId: "2" },
      { tenant: "from-stream", requestId: "6" },
    ],
  );
  const dead = Object.values(await redis.hgetall("shop.order.relay.checkpoint:dead")).join();
  assert.match(dead, /its data has no valid request id/);
  assert.match(dead, /its metadata is not a JSON object/);
  await redis.del("shop.order.relay.checkpoint");
  const again = await runCommand(["run", "--once"], env);
  assert.match(again.stderr, /0 dispatched/, again.stderr);
  assert.equal((await jobsOf("shop.order")).length, 3);
});

test("E5 E9 bad places, contexts and addresses are told by name, and show no password", async () => {
  const told = async (env: Readonly<Record<string, string>>) => {
    const { code, stderr, stdout } = await runCommand(["config", "validate"], env);
    assert.equal(code, 2, stderr);
    assert.doesNotMatch(stderr + stdout, /hunter2/);
    return stderr + stdout;
  };
  const env = environment("payment.payout");
  assert.match(
    await told({ ...env, KURRENTDB_URL: "http://admin:hunter2@h" }),
    /KURRENTDB_URL is not an event store address/,
  );
  assert.match(await told({ ...env, OUTBOX_CONTEXTS: "payout" }), /"payout" is not of the form <context>\.<aggregate>/);
  assert.match(await told({ ...env, OUTBOX_CONTEXTS: "a.b,a.b" }), /a\.b twice/);
  assert.match(await told({ ...env, OUTBOX_CONTEXTS: "a.b?color=red" }), /the unknown parameter color/);
  assert.match(await told({ ...env, OUTBOX_DESTINATION: "stdout:" }), /must be a single BullMQ destination/);
  assert.match(await told({ ...env, DATABASE_URL: "postgres://h/d" }), /KURRENTDB_URL and DATABASE_URL are both set/);
  const { OUTBOX_CONTEXTS: _, ...without } = env;
  assert.match(await told(without), /OUTBOX_CONTEXTS is missing/);
});

test("E3 E5 what is dead can be looked at, replayed and discarded; a context can be sent back to a place", async () => {
  const broken = { ...request("desk.ticket", "1"), data: { no: "id" } };
  const early = request("desk.ticket", "2");
  await store.seed([broken, early]);
  const env = environment("desk.ticket");
  await runCommand(["run", "--once"], env);
  const dead = await runCommand(["requests", "dead", "desk.ticket", "-o", "json"], env);
  assert.deepEqual(
    (JSON.parse(dead.stdout) as { eventId: string; stream: string }[]).map(({ eventId, stream }) => [eventId, stream]),
    [[broken.id, broken.stream]],
  );
  const replayed = await runCommand(["requests", "replay", "desk.ticket", broken.id], env);
  assert.deepEqual(
    [replayed.code, replayed.stdout],
    [5, `${broken.id} still dead: its data has no valid request id: it is missing\n`],
  );
  assert.equal((await runCommand(["requests", "discard", "desk.ticket", broken.id], env)).code, 0);
  const list = await runCommand(["requests", "list", "-o", "json"], env);
  const [standing] = JSON.parse(list.stdout) as { dead: number; jobs: { waiting: number }; holder: null }[];
  assert.deepEqual([standing?.dead, standing?.jobs.waiting, standing?.holder], [0, 1, null]);
  assert.match(
    (await runCommand(["requests", "seek", "desk.tickt", "--to", "now"], env)).stderr,
    /did you mean desk\.ticket/,
  );
  const plan = await runCommand(["requests", "seek", "desk.ticket", "--to", "2020-01-01T00:00:00Z"], env);
  assert.match(plan.stdout, /would continue at beginning instead of \d+\/\d+.*Nothing was changed/s);
  await using running = await relay("desk.ticket");
  await running.becomes("healthy");
  await redis.del(
    `desk.ticket:v1:{core}:dispatched:${early.id}`,
    `bull:desk.ticket:${early.id}`,
    "bull:desk.ticket:wait",
  );
  assert.equal((await runCommand(["requests", "seek", "desk.ticket", "--to", "beginning", "--yes"], env)).code, 0);
  await until("it is dispatched anew by the relay that runs", async () => (await jobsOf("desk.ticket")).length === 1);
});

test("E5 a Redis that lost its memory halts the context and says the way out; nothing is dispatched from the beginning in silence", async () => {
  await store.seed([request("ops.task", "1")]);
  await using running = await relay("ops.task", { REQUEST_CHECKPOINTS: "eventstore" });
  await until("the first is there", async () => (await jobsOf("ops.task")).length === 1);
  await redis.flushall();
  await store.seed([request("ops.task", "2")]);
  const line = await running.logged("that it halted", (it) => it.state === "halted");
  assert.deepEqual([line.code, /requests seek/.test(String(line.reason))], ["QUEUE_FORGOT", true]);
  await running.becomes("unhealthy");
  await until("it is unready", async () => (await running.get("/readyz")).status === 503);
  running.kill("SIGTERM");
  assert.equal((await running.ended).code, 0);
  await using again = await relay("ops.task", { REQUEST_CHECKPOINTS: "eventstore" });
  await again.logged("that it halts again", (it) => it.code === "QUEUE_FORGOT");
  assert.equal((await jobsOf("ops.task")).length, 0);
  const env = environment("ops.task", { REQUEST_CHECKPOINTS: "eventstore" });
  await runCommand(["requests", "seek", "ops.task", "--to", "beginning", "--yes"], env);
  await using mended = await relay("ops.task", { REQUEST_CHECKPOINTS: "eventstore" });
  await until("both are there", async () => (await jobsOf("ops.task")).length === 2);
  await mended.becomes("healthy");
});

test("E1 E4 E9 many contexts and two relays of them: each event once, through drops, kills and a new leader", async () => {
  const names = Array.from({ length: 12 }, (_, at) => `area${at}.thing`);
  const contexts = names.join(",");
  await store.seed(names.map((name) => request(name, "1")));
  await using one = await relay(contexts, { RELAY_ID: "one" });
  await using two = await relay(contexts, { RELAY_ID: "two" });
  const count = async () => (await Promise.all(names.map(jobsOf))).map(({ length }) => length);
  const all = (expected: number) => async () => (await count()).every((it) => it === expected);
  await until("the first of each is there", all(1));
  await store.dropSubscriptions();
  await store.seed(names.map((name) => request(name, "2")));
  await until("the second too", all(2));
  await store.kill();
  await one.logged("that the store is gone", (it) => it.state === "broken");
  await store.restart();
  await store.seed(names.map((name) => request(name, "3")));
  await until("the third too", all(3));
  one.kill("SIGKILL");
  await store.seed(names.map((name) => request(name, "4")));
  await until("the fourth too, by the other one", all(4));
  two.kill("SIGTERM");
  assert.equal((await two.ended).code, 0);
  assert.deepEqual(new Set(await count()), new Set([4]));
});

test("E5 doctor looks at the event store, Redis and every context, and says what mends each finding", async () => {
  const env = environment("clinic.visit");
  const told = await runCommand(["doctor"], env);
  assert.deepEqual(
    [told.code, /no instance dispatches its requests/.test(told.stdout)],
    [3, true],
    told.stdout + told.stderr,
  );
  await using running = await relay("clinic.visit");
  await running.becomes("healthy");
  const look = async () => {
    const { code, stdout } = await runCommand(["doctor"], env);
    return [code, stdout];
  };
  await untilEqual("all is well", look, [0, "No problems found: the event store, Redis and 1 context.\n"]);
  await redis.config("SET", "maxmemory-policy", "allkeys-lru");
  const evicting = await runCommand(["doctor", "-o", "json"], env);
  await redis.config("SET", "maxmemory-policy", "noeviction");
  assert.match(evicting.stdout, /maxmemory-policy noeviction/);
  const lost = await runCommand(["doctor"], { ...env, KURRENTDB_URL: "kurrentdb://127.0.0.1:1?tls=false" });
  assert.deepEqual([lost.code, /✗ event store/.test(lost.stdout)], [3, true], lost.stdout + lost.stderr);
  assert.match((await runCommand(["status"], env)).stderr, /outbox-relay requests list/);
});
