import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import type { HealthCause } from "../../src/core/health-cause.ts";
import { freePort } from "../servers/free-port.ts";
import { assertWithin } from "../servers/pace.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { runCommand, type ServiceProcess, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "health", [ORDERS]);
const PIPELINE = "orders.outbox->http";
const OPENED = `/#/pipelines?open=${encodeURIComponent("orders.outbox->stdout")}`;
/** A pipeline is stalled after a minute; lanes are taken again in growing pauses. */
const LASTING_MS = 180_000;

/** Answers as it is told to, as late as it is told to. */
async function startReceiver() {
  const how = { status: 200, afterMs: 0 };
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      setTimeout(() => response.writeHead(how.status).end("no such customer: key-secret"), how.afterMs); // why: it is the slow receiver
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { how, url, [Symbol.asyncDispose]: stop };
}

const write = ({ sql }: Stage, keys: string, count: number) =>
  sql(
    `insert into orders.outbox (aggregate_id, event_type, payload)
     select $1 || n, 'order.placed', '{"card": "payload-secret"}' from generate_series(1, $2::int) n`,
    [keys, count],
  );

interface Told {
  readonly status: string;
  readonly grade: string;
  readonly causes: readonly HealthCause[];
}

async function causeIn(
  running: ServiceProcess,
  code: string,
  timeoutMs?: number,
): Promise<Told & { readonly cause: HealthCause }> {
  const look = async () => {
    const told = (await running.get("/health")).json() as unknown as Told;
    const cause = told.causes.find((it) => it.code === code && it.since !== null);
    return cause === undefined ? null : { ...told, cause };
  };
  return await until(`health has the cause ${code}, and since when`, look, timeoutMs);
}

/** What the overview says of the only destination's answers. */
async function answersIn(running: ServiceProcess) {
  const { destinations } = (await running.get("/api/v1/overview")).json() as unknown as {
    destinations: {
      answers: { lastFiveMinutes: { p50Ms: number | null }; slow: { presentMs: number } | null } | null;
    }[];
  };
  return destinations[0]?.answers ?? null;
}

describe("health", { concurrency: 2 }, () => {
  test("H1 A18: dead letters, pauses and a slow destination want attention, and nothing is restarted for them", async () => {
    await using it = await stage();
    await using receiver = await startReceiver();
    const PORT = String(await freePort());
    const common = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: receiver.url };
    const env = { ...common, PORT, MAX_RETRIES: "1", POLL_INTERVAL_MS: "100", NO_COLOR: "1" };
    await using running = startService(["run"], env);
    await running.becomes("healthy");
    const delivered = async (count: number) => {
      const rows = await it.sql<{ n: string }>(
        "select count(*) as n from outbox_relay.relay_state where total_events_published >= $1",
        [count],
      );
      return Number(rows[0]?.n) > 0;
    };
    // The first requests of a busy machine take long: quick ones, until they are known to be the usual.
    let quick = 0;
    await until("it is known what is usual", async () => {
      await write(it, `quick-${quick}-`, 60);
      quick += 60;
      await until("they are delivered", () => delivered(quick));
      return ((await answersIn(running))?.lastFiveMinutes.p50Ms ?? 3_000) < 300;
    });

    receiver.how.afterMs = 3_000;
    const startedMs = performance.now();
    await write(it, "slow-", 400);
    const slow = await causeIn(running, "destination-slow");
    await assertWithin(performance.now() - startedMs, 60_000, "noticing the slow destination");
    assert.deepEqual([slow.grade, slow.status, slow.cause.destination], ["attention", "healthy", "http"]);
    assert.equal(slow.cause.link, "/#/destinations/http");
    for (const metric of [
      /outbox_relay_destination_slow\{destination="http"\} 1/,
      /outbox_relay_health_cause\{code="destination-slow",grade="attention",source="",destination="http"\} 1/,
    ]) {
      await until(`the metrics have ${metric}`, async () => metric.test((await running.get("/metrics")).body));
    }
    // The overview is remembered for some seconds.
    await until("the overview shows it", async () => ((await answersIn(running))?.slow?.presentMs ?? 0) >= 250);

    receiver.how.afterMs = 0;
    await until("the slow ones are delivered too", () => delivered(quick + 400));
    receiver.how.status = 422;
    await write(it, "key-secret-", 3);
    const dead = await causeIn(running, "dead-letters");
    assert.deepEqual([dead.grade, dead.status, dead.cause.pipeline], ["attention", "healthy", PIPELINE]);
    assert.match(dead.cause.what, /dead letter/);
    assert.equal(
      (await causeIn(running, "keys-parked")).cause.link,
      `/#/keys?pipeline=${encodeURIComponent(PIPELINE)}`,
    );

    const paused = await runCommand(["pause", "orders.outbox", "--reason", "a test"], env);
    assert.equal(paused.code, 0, paused.stderr);
    const stopped = await causeIn(running, "pipeline-paused");
    assert.match(stopped.cause.what, /is paused by /);
    for (const [path, status] of [
      ["/health", 200],
      ["/readyz", 200],
      ["/livez", 200],
    ] as const) {
      assert.equal((await running.get(path)).status, status, path);
    }
    assert.doesNotMatch(
      (await running.get("/health")).body,
      /payload-secret|key-secret/,
      "health is open to everybody",
    );
    await statusTells(env);
  });

  test("H1 A7: a settle that never succeeds is degraded, with its cause, and ends by itself", async () => {
    await using it = await stage();
    const PORT = String(await freePort());
    await it.sql(`create function orders.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not today' using errcode = '55P03'; end $$;
      create trigger refuse before update on orders.outbox for each row execute function orders.refuse()`);
    const common = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
    await using running = startService(["run"], { ...common, PORT, POLL_INTERVAL_MS: "100" });
    await running.becomes("healthy");
    await write(it, "k", 5);
    const { cause, grade, status } = await causeIn(running, "source-broken");
    assert.deepEqual([grade, status, cause.source, cause.link], ["degraded", "degraded", "orders.outbox", OPENED]);
    assert.equal(cause.runbook, "docs/operate/runbook.md#source-broken");
    await it.sql("drop trigger refuse on orders.outbox");
    await until("all is well", async () => (await running.get("/health")).json().grade === "ok");
  });

  test("H1 A18: a lock that keeps the table from being read is reported within seconds, and without a break", async () => {
    await using it = await stage();
    const PORT = String(await freePort());
    const common = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
    await using running = startService(["run"], { ...common, PORT, POLL_INTERVAL_MS: "100" });
    await running.becomes("healthy");
    const migration = await it.pool.connect();
    try {
      await migration.query("begin; lock table orders.outbox in access exclusive mode");
      const { cause, grade } = await causeIn(running, "source-broken", 20_000);
      assert.deepEqual([grade, cause.source], ["degraded", "orders.outbox"]);
      assert.match(cause.what, /another transaction held a lock on the table/);
      // Meanwhile three reads wait for the lock in vain, each for two seconds.
      const endMs = performance.now() + 7_000;
      const grades = new Set<unknown>();
      await until("several reads were refused", async () => {
        grades.add((await running.get("/health")).json().grade);
        return performance.now() >= endMs;
      });
      assert.deepEqual([...grades], ["degraded"]);
    } finally {
      await migration.query("rollback");
      migration.release();
    }
    await until("all is well", async () => (await running.get("/health")).json().grade === "ok");
  });

  test("H1 A18: a lane whose every settle loses its connection is degraded, with its cause, and ends by itself", async () => {
    await using it = await stage();
    const PORT = String(await freePort());
    await it.sql(`create function orders.cut() returns trigger language plpgsql as
      $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
      create trigger cut before update on orders.outbox for each row execute function orders.cut()`);
    const common = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: "stdout:" };
    await using running = startService(["run"], { ...common, PORT, POLL_INTERVAL_MS: "100", LANES: "1" });
    await running.becomes("healthy");
    await write(it, "k", 1);
    const { cause, grade } = await causeIn(running, "lane-failing", LASTING_MS);
    assert.equal(grade, "degraded");
    assert.match(cause.what, /lane 0 delivers nothing: every attempt to read it fails: \S+/);
    assert.deepEqual([cause.pipeline, cause.link], ["orders.outbox->stdout", OPENED]);
    assert.equal((await running.get("/livez")).status, 200, "no container is restarted for it");
    await it.sql("drop trigger cut on orders.outbox");
    await until("all is well", async () => (await running.get("/health")).json().grade === "ok", LASTING_MS);
  });

  test("H1 A18: a pipeline that delivers nothing for a minute, with no other cause, is stalled until it delivers", async () => {
    await using it = await stage();
    await using receiver = await startSilentReceiver();
    const PORT = String(await freePort());
    const common = { DATABASE_URL: it.relayUrl, OUTBOX_SCHEMAS: "orders", OUTBOX_DESTINATION: receiver.url };
    // Nothing fails before the time-out, so only the missing progress says that something is wrong.
    const env = { ...common, PORT, POLL_INTERVAL_MS: "100", PUBLISH_TIMEOUT: "5m", INSTANCE_LEASE: "15m" };
    await using running = startService(["run"], env);
    await running.becomes("healthy");
    await write(it, "k", 3);
    const { cause, grade, status } = await causeIn(running, "pipeline-stalled", LASTING_MS);
    assert.deepEqual([grade, status, cause.pipeline], ["degraded", "degraded", PIPELINE]);
    assert.match(cause.what, /3 events wait, and none has been delivered for \d+ s/);
    assert.equal(cause.link, `/#/pipelines?open=${encodeURIComponent(PIPELINE)}`);
    for (const path of ["/readyz", "/livez"]) assert.equal((await running.get(path)).status, 200, path);
    receiver.answer();
    await until("all is well", async () => (await running.get("/health")).json().grade === "ok", LASTING_MS);
  });
});

/** Takes requests and keeps them all waiting, until it answers these and all that follow. */
async function startSilentReceiver() {
  let isSilent = true;
  const waiting: (() => void)[] = [];
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const answer = () => void response.writeHead(204).end();
      if (isSilent) waiting.push(answer);
      else answer();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    answer: () => {
      isSilent = false;
      for (const answer of waiting.splice(0)) answer();
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What the commands say by the database alone agrees with it. */
async function statusTells(env: Readonly<Record<string, string>>): Promise<void> {
  const { code, stdout } = await runCommand(["status", "-o", "json"], env);
  const told = JSON.parse(stdout) as { grade: string; causes: readonly HealthCause[] };
  assert.deepEqual([code, told.grade], [3, "attention"]);
  const codes = told.causes.map((cause) => cause.code);
  for (const wanted of ["dead-letters", "keys-parked", "pipeline-paused"] as const)
    assert.ok(codes.includes(wanted), stdout);
}
