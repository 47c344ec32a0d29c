import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { historyOf, requestPayout } from "../../examples/requests/payouts.ts";
import { type EventLog, kurrentdbLog } from "../../src/kurrentdb.ts";
import { type ServiceProcess, startService } from "../e2e/service-process.ts";
import { freePort } from "../servers/free-port.ts";
import { type KurrentDb, startKurrentDb } from "../servers/kurrentdb.ts";
import { type RedisServer, startRedis } from "../servers/redis.ts";
import { until } from "../servers/until.ts";
import { type Bank, startBank } from "./bank.ts";

const FOLDER = fileURLToPath(new URL("../../examples/requests/", import.meta.url));
const sections = readFileSync(join(FOLDER, "expected-output.txt"), "utf8").split("\n\n");

// The event store is a fake that speaks KurrentDB's protocol: no server can be had here.
let store: KurrentDb;
let redis: RedisServer;
let bank: Bank;
let log: EventLog;
let relay: ServiceProcess;
let env: Readonly<Record<string, string>>;

before(async () => {
  [store, redis, bank] = await Promise.all([
    startKurrentDb(),
    startRedis(["--maxmemory-policy", "noeviction"]),
    startBank(),
  ]);
  log = kurrentdbLog({ url: store.url });
  env = { KURRENTDB_URL: store.url, REDIS_URL: redis.url, BANK_URL: bank.origin, LOCK: "1500" };
  relay = startService(["run"], {
    KURRENTDB_URL: store.url,
    OUTBOX_CONTEXTS: "payment.payout",
    OUTBOX_DESTINATION: `bullmq+${redis.url}`,
    PORT: String(await freePort()),
  });
});

after(async () => {
  await relay?.[Symbol.asyncDispose]();
  await log?.close();
  await Promise.all([store, redis, bank].map((server) => server?.[Symbol.asyncDispose]()));
});

const startWorker = () => startService([join(FOLDER, "worker.ts")], env, process.execPath);

async function printed(program: string): Promise<string> {
  await using running = startService([join(FOLDER, program)], env, process.execPath);
  const { code, stderr, stdout } = await running.ended;
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

const typesOf = async (tenant: string, id: string) => (await historyOf(log, tenant, id)).map(({ type }) => type);

test("E1 E3 E6 E7 from the command to the outcome: relay and worker as processes, a retry that the bank asked for, a refusal", async () => {
  await using worker = startWorker();
  assert.equal(await printed("request-payouts.ts"), sections[0]);
  await until("all have ended", async () => {
    const ends = await Promise.all([
      typesOf("core", "payout-1"),
      typesOf("core", "payout-2"),
      typesOf("acme", "payout-3"),
    ]);
    return ends.map((types) => types.length).join() === "2,3,2";
  });
  assert.equal(await printed("show-payouts.ts"), sections[1]?.trim());
  assert.deepEqual([...bank.paid.keys()], ["core:payout-1:0", "core:payout-2:0"]);
  const [asked, failed, completed] = await historyOf(log, "core", "payout-2");
  const waitedMs = completed!.createdMs - failed!.createdMs;
  assert.ok(waitedMs >= 900, `Retry-After was one second, and it was tried after ${waitedMs} ms`);
  for (const [event, cause] of [
    [failed!, asked!],
    [completed!, failed!],
  ] as const) {
    assert.equal(event.metadata!.causationId, cause.id);
    assert.equal(event.metadata!.correlationId, asked!.metadata!.correlationId);
    assert.deepEqual([event.metadata!.tenant, event.metadata!.eventId], ["core", event.id]);
  }
  const relayed = await relay.logged("the retry", ({ jobId }) => jobId === failed!.id);
  await worker.logged("the outcome", ({ jobId, outcome }) => jobId === failed!.id && outcome === "completed");
  const told = worker.logs(({ jobId, outcome }) => jobId === failed!.id && outcome === "completed");
  for (const line of [relayed, ...told]) {
    const { causationId, correlationId, eventId, requestId, source, stream, tenant } = line;
    assert.deepEqual([eventId, causationId, requestId, tenant], [failed!.id, asked!.id, "payout-2", "core"]);
    assert.deepEqual([stream, source], [failed!.stream, "service://payment/payout"]);
    assert.equal(correlationId, asked!.metadata!.correlationId);
  }
  assert.equal(told.length, 1);
  worker.kill("SIGTERM");
  assert.equal((await worker.ended).code, 0);
});

test("E6 a worker that is killed after the bank has paid: the next one asks by the same key, pays nothing twice, and records one outcome", async () => {
  const answers = bank.falls("dora");
  await using first = startWorker();
  await requestPayout(log, "core", { id: "payout-4", account: "dora", amount: 5 });
  await until("the bank has paid", () => bank.paid.has("core:payout-4:0"));
  first.kill("SIGKILL");
  await first.ended;
  answers();
  await using second = startWorker();
  await until("its outcome is there", async () => (await typesOf("core", "payout-4")).length > 1);
  assert.deepEqual(await typesOf("core", "payout-4"), ["PayoutCreated.v1", "PayoutCompleted.v1"]);
  assert.deepEqual(
    bank.asked.filter((key) => key.startsWith("core:payout-4")),
    ["core:payout-4:0", "core:payout-4:0"],
  );
  const { data } = (await historyOf(log, "core", "payout-4"))[1]!;
  assert.deepEqual(data, { id: "payout-4", result: { transfer: bank.paid.get("core:payout-4:0") } });
  // The outcome is appended before it is told.
  await second.logged("the outcome", ({ outcome }) => outcome === "completed");
  assert.equal(second.logs(({ outcome }) => outcome === "completed").length, 1);
});

test("E1 E7 the projector keeps each request's state and the totals in Redis, each event once, also after a kill", async () => {
  const client = new Redis(redis.url);
  const metricsPort = await freePort();
  const startProjector = () =>
    startService([join(FOLDER, "projector.ts")], { ...env, METRICS_PORT: String(metricsPort) }, process.execPath);
  const stateOf = (tenant: string, id: string) => client.hgetall(`payment.payout:v1:{${tenant}}:request:${id}`);
  const totals = async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  try {
    await requestPayout(log, "late", { id: "payout-5", account: "eve", amount: 1 });
    {
      await using projector = startProjector();
      await until("it has read all", async () => (await stateOf("late", "payout-5")).state !== undefined);
      projector.kill("SIGKILL");
      await projector.ended;
    }
    const { at, ...retried } = await stateOf("core", "payout-2");
    assert.deepEqual([retried.state, JSON.parse(retried.result ?? "")], ["completed", { transfer: 2 }]);
    assert.match(at ?? "", /Z$/);
    const { reason, state } = await stateOf("acme", "payout-3");
    assert.deepEqual([state, reason], ["failed", "the bank refuses: the account is closed"]);
    await using second = startProjector();
    await using _worker = startWorker();
    await until("it goes on", async () => (await stateOf("late", "payout-5")).state === "completed");
    assert.equal(
      await totals(),
      `# TYPE payout_requests_total counter
payout_requests_total{state="completed"} 4
payout_requests_total{state="failed"} 1
payout_requests_total{state="requested"} 5
payout_requests_total{state="retrying"} 1
`,
    );
    second.kill("SIGTERM");
    assert.equal((await second.ended).code, 0);
  } finally {
    client.disconnect();
  }
});
