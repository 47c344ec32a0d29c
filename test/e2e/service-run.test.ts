import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { assertWithin } from "../servers/pace.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS, outboxTableSql } from "./outbox-tables.ts";
import { type ServiceProcess, startBehindShell, startService } from "./service-process.ts";
import { openStage, type Stage } from "./stage.ts";

let server: PostgresServer;
let stages = 0;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

async function stage(on: PostgresServer = server): Promise<Stage> {
  stages += 1;
  return await openStage(on, { database: `service_${stages}`, tables: [ORDERS, BILLING] });
}

async function service(it: Stage, env: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
  return startService(["run"], {
    DATABASE_URL: it.relayUrl,
    OUTBOX_SCHEMAS: "orders,billing",
    OUTBOX_DESTINATION: "stdout:",
    PORT: String(await freePort()),
    ...env,
  });
}

async function insert({ sql }: Stage, table: string, count = 1): Promise<void> {
  await sql(`insert into ${table} (aggregate_id, event_type, payload)
    select 'key-' || n % 50, 'order.placed', '{}' from generate_series(1, ${count}) n`);
}

const delivered = (process: ServiceProcess): number => process.stdout().split('{"id":').length - 1;

/** Waits until the health tells of a problem, and returns the status. */
async function problem(process: ServiceProcess, told: RegExp): Promise<unknown> {
  return await until(`the health tells ${told}`, async () => {
    const health = await process.get("/health").then(
      ({ json }) => json(),
      () => null,
    );
    return told.test(JSON.stringify(health?.problems ?? [])) && health?.status;
  });
}

function sample(text: string, name: string): number {
  const line = text.split("\n").find((it) => it.startsWith(`${name} `)) ?? assert.fail(`${name} is not in\n${text}`);
  return Number(line.slice(name.length + 1));
}

describe("outbox-relay run", { concurrency: 3 }, () => {
  test("A18 A11 A19: an idle service is healthy, counts what it delivers, and has limited its own heap", async () => {
    await using it = await stage();
    await using running = await service(it, { SERVICE_NAME: "shop-relay", LOG_EVENTS: "all" });
    const health = await running.becomes("healthy");
    assert.deepEqual(Object.keys(health).sort(), [
      "causes",
      "grade",
      "lastPollTime",
      "service",
      "status",
      "timestamp",
      "unpublishedEventCount",
      "uptime",
    ]);
    assert.deepEqual([health.service, health.unpublishedEventCount], ["shop-relay", 0]);
    await insert(it, "orders.outbox", 3);
    await until("the counter shows them", async () => {
      const { body } = await running.get("/metrics");
      return sample(body, 'outbox_relay_events_published_total{source="orders.outbox",destination="stdout"}') === 3;
    });
    const lag = 'outbox_relay_lag_seconds{schema="orders"}';
    await until("nothing is late", async () => sample((await running.get("/metrics")).body, lag) === 0);
    const { body } = await running.get("/metrics");
    assert.equal(sample(body, "outbox_relay_failed_events"), 0);
    assert.ok(sample(body, 'outbox_relay_poll_duration_count{source="orders.outbox"}') > 0);
    const line = await running.logged("a delivery", ({ event }) => event === "IntentRelayed");
    assert.match(String(line.correlationId), /^[0-9a-f-]{36}$/);
    const flags = readFileSync(`/proc/${running.pid}/cmdline`, "utf8").split("\0");
    assert.ok(
      flags.includes("--max-old-space-size=128") && flags.includes("--max-semi-space-size=16"),
      flags.join(" "),
    );
  });

  test("A7: a missing schema is seen in health, metrics and log, keeps nobody, and comes in when it appears", async () => {
    await using it = await stage();
    await using running = await service(it, { OUTBOX_SCHEMAS: "orders,late" });
    assert.equal(await problem(running, /late\.outbox.*does not exist/), "degraded");
    await insert(it, "orders.outbox");
    await until("the neighbour is delivered", () => delivered(running) === 1);
    const broken = async (source: string) =>
      sample((await running.get("/metrics")).body, `outbox_relay_source_broken{source="${source}"}`);
    await until("the metric tells", async () => (await broken("late.outbox")) === 1);
    assert.equal(await broken("orders.outbox"), 0);
    await running.logged("the source is broken", (line) => line.code === "TABLE_MISSING" && line.level === "error");
    // Under the other usual name, so that only a new look at the catalogue can find it.
    await it.sql(outboxTableSql({ ...ORDERS, schema: "late", table: "outbox_events" }));
    await it.sql(`grant usage on schema late to ${it.role}; grant select, update on late.outbox_events to ${it.role}`);
    await insert(it, "late.outbox_events");
    await until("the late table is delivered", () => delivered(running) === 2);
    await running.becomes("healthy");
    const repeated = running.logs(
      ({ event, pipeline }) => event === "SourceBroken" && pipeline === "late.outbox->stdout",
    );
    assert.equal(repeated.length, 1, "the same trouble is not logged over and over");
  });

  test("A7: a table without the grants is seen, and comes in by itself when they are given", async () => {
    await using it = await stage();
    await it.sql(`revoke update on billing.outbox_events from ${it.role}`);
    await insert(it, "billing.outbox_events");
    await using running = await service(it);
    assert.equal(await problem(running, /lacks UPDATE on .*billing/), "degraded");
    await it.sql(`grant update on billing.outbox_events to ${it.role}`);
    await until("it is delivered", () => delivered(running) === 1);
    await running.becomes("healthy");
  });

  test("G5: SIGTERM under load ends in good order with 0: what was written is marked, once", async () => {
    await using it = await stage();
    await insert(it, "orders.outbox", 20_000);
    await using running = await service(it);
    await until("it delivers", () => delivered(running) > 500);
    running.kill("SIGTERM");
    const { code, stderr } = await running.ended;
    assert.equal(code, 0, stderr);
    const [row] = await it.sql<{ count: string }>("select count(*) from orders.outbox where published");
    assert.equal(Number(row?.count), delivered(running), "every event that was written is marked");
    const owners = await it.sql("select from outbox_relay.lanes where owner is not null");
    assert.deepEqual([owners.length, (await it.sql("select from outbox_relay.instances")).length], [0, 0]);
  });

  test("G5: behind npm, whose shell keeps signals to itself, the end of the shell stops the service in good order", async () => {
    await using it = await stage();
    const env = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
    await using running = startBehindShell({ ...env, PORT: String(await freePort()) });
    await running.becomes("healthy");
    running.kill("SIGTERM");
    // The streams close when the last process has ended, and that is the service.
    const { stderr } = await running.ended;
    assert.match(stderr, /"signal":"SIGTERM"/);
    assert.deepEqual(await it.sql("select from outbox_relay.instances"), []);
  });

  test("G5: SIGHUP reads the settings again, secrets in files included; what cannot be used changes nothing", async () => {
    await using first = await stage();
    await using second = await stage();
    const folder = mkdtempSync(join(tmpdir(), "outbox-relay-reload-"));
    const file = join(folder, "url");
    try {
      writeFileSync(file, `${first.relayUrl}\n`);
      const env = { DATABASE_URL_FILE: file, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
      await using running = startService(["run"], { ...env, PORT: String(await freePort()) });
      await insert(first, "orders.outbox");
      await until("the first database is served", () => delivered(running) === 1);
      writeFileSync(file, "nonsense");
      running.kill("SIGHUP");
      await running.logged("the new settings are refused", ({ message }) => /the old ones stay/.test(String(message)));
      writeFileSync(file, second.relayUrl);
      running.kill("SIGHUP");
      await insert(second, "orders.outbox");
      await until("the second database is served", () => delivered(running) === 2);
      await running.becomes("healthy");
      const left = await first.sql("select from outbox_relay.lanes where owner is not null");
      assert.deepEqual(left, [], "the first one was handed over in good order");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("outbox-relay run beside a database in trouble", { concurrency: 2 }, () => {
  test("A18 A13 G4: while the database is gone it is unhealthy and unready, alive, late, and back by itself", async () => {
    await using own = await startPostgres({ version: 18 });
    await using it = await stage(own);
    await using running = await service(it);
    await running.becomes("healthy");
    await own.kill();
    const health = await running.becomes("unhealthy");
    assert.match(JSON.stringify(health.problems), /"part":"database"/);
    assert.equal((await running.get("/health")).status, 503);
    assert.equal((await running.get("/livez")).status, 200);
    await until("it is unready", async () => (await running.get("/readyz")).status === 503);
    const lag = async () => sample((await running.get("/metrics")).body, 'outbox_relay_lag_seconds{schema="orders"}');
    const before = await until("the lag is no longer nothing", async () => (await lag()) || false);
    await until("the lag grows although nobody can look", async () => (await lag()) > before + 0.5);
    await own.restart();
    await insert(it, "orders.outbox");
    await until("it delivers again", () => delivered(running) === 1);
    await running.becomes("healthy");
  });

  test("A18 G5: a frozen database makes nothing slow, a stop is in time, and a second signal ends it at once", async () => {
    await using own = await startPostgres({ version: 18 });
    await using it = await stage(own);
    await using running = await service(it, { SHUTDOWN_TIMEOUT_MS: "3s" });
    await using other = await service(it, { SHUTDOWN_TIMEOUT_MS: "1m" });
    await running.becomes("healthy");
    await other.becomes("healthy");
    await own.pause();
    try {
      await running.becomes("unhealthy");
      for (const path of ["/health", "/metrics", "/readyz", "/livez"]) {
        const startedMs = performance.now();
        await running.get(path);
        const tookMs = performance.now() - startedMs;
        await assertWithin(tookMs, 2_500, path);
      }
      const stoppedMs = performance.now();
      running.kill("SIGTERM");
      assert.equal((await running.ended).code, 0);
      const tookMs = performance.now() - stoppedMs;
      await assertWithin(tookMs, 3_500, "the stop");
      other.kill("SIGINT");
      await other.logged("it is stopping", ({ message }) => /^stopping/.test(String(message)));
      other.kill("SIGTERM");
      assert.equal((await other.ended).code, 143);
    } finally {
      own.resume();
    }
  });

  test("G2: a database that is not there at the start is waited for, visibly", async () => {
    await using own = await startPostgres({ version: 18 });
    await using it = await stage(own);
    await insert(it, "orders.outbox");
    await own.stop();
    await using running = await service(it);
    await running.logged("it waits", ({ level, message }) => level === "error" && /unreachable/.test(String(message)));
    assert.equal((await running.becomes("unhealthy")).unpublishedEventCount, null);
    await own.restart();
    await until("it delivers", () => delivered(running) === 1);
    await running.becomes("healthy");
  });
});
