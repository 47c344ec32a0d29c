import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { freePort } from "../servers/free-port.ts";
import { openOutboxTableSql } from "../servers/openoutbox-table.ts";
import { until } from "../servers/until.ts";
import { runCommand, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import type { Stage } from "./stage.ts";

const TABLE = "shop_events";
const stage = stagesOn(serverOfFile(), "openoutbox", []);

async function opened(): Promise<Stage> {
  const it = await stage();
  await it.sql(`${openOutboxTableSql(TABLE)} ${openOutboxTableSql("openoutbox_events")}
    grant select, update, delete on ${TABLE} to ${it.role}; grant select, update on openoutbox_events to ${it.role}`);
  return it;
}

/** Returns the ids. */
async function write({ sql }: Stage, count: number, columns = "status", values = "'PENDING'"): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await sql(
    `insert into ${TABLE} (event_id, event_type, partition_key, payload, ${columns})
     select id, 'order.placed', 'key-' || n % 5, convert_to(n::text, 'UTF8'), ${values}
     from unnest($1::uuid[]) with ordinality u(id, n)`,
    [ids],
  );
  return ids;
}

/** What a deployment of the original sets, as its documentation shows it; the example's NATS address has no server. */
const environmentOf = ({ relayUrl }: Stage, port: number) => ({
  STORAGE_TYPE: "postgres",
  STORAGE_TABLE_NAME: TABLE,
  STORAGE_URL: relayUrl,
  PUBLISHER_TYPE: "stdout",
  PUBLISHER_URL: "nats://localhost:4222",
  POLL_INTERVAL: "100ms",
  HEALTH_CHECK_INTERVAL: "5s",
  KAFKA_REQUIRED_ACKS: "all",
  OTEL_TRACES_EXPORTER: "none",
  OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4317",
  SERVER_PORT: `:${port}`,
  RELAY_ID: "relay-eu-1",
});

test("B5 a deployment of the Open Outbox Relay starts as it is: its table, its publisher, its port, its figures", async () => {
  await using it = await opened();
  const ids = await write(it, 20);
  const later = await write(it, 3, "available_at", "now() + interval '1 h'");
  const port = await freePort();
  await using running = startService(["run"], { ...environmentOf(it, port), PORT: String(port) });
  const delivered = () =>
    running
      .stdout()
      .match(/^\{"id":"[^"]+"/gm)
      ?.map((line) => line.slice(7, -1)) ?? [];
  await until("its events are on standard output", () => delivered().length >= ids.length);
  assert.deepEqual(delivered().toSorted(), ids.toSorted());
  await until("they are marked", async () => {
    const [row] = await it.sql(`select count(*)::int as count from ${TABLE} where status = 'DELIVERED'`);
    return row?.count === ids.length;
  });
  const warned = running.logs(({ level }) => level === "warn").map(({ message, msg }) => String(message ?? msg));
  assert.ok(
    warned.some((text) => /without effect here.*HEALTH_CHECK_INTERVAL/.test(text)),
    warned.join("\n"),
  );
  const stats = async () => JSON.stringify((await running.get("/stats")).json());
  await until("what waits is counted", async () => /"pending_count":3,"retrying_count":0/.test(await stats()));
  for (const path of ["/healthz", "/readyz"]) assert.equal((await running.get(path)).status, 200, path);
  assert.equal(later.length, 3);
});

test("B5 RELAY_ID is in locked_by while an event is sent", async () => {
  await using it = await opened();
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  try {
    await write(it, 1);
    const { port: receiver } = silent.address() as AddressInfo;
    const publisher = { PUBLISHER_TYPE: "http", PUBLISHER_URL: `http://127.0.0.1:${receiver}/` };
    const env = { ...environmentOf(it, await freePort()), ...publisher };
    await using _running = startService(["run"], env);
    const claimed = await until("it is claimed", async () => {
      const [row] = await it.sql<{ locked_by: string }>(`select locked_by from ${TABLE} where status = 'DELIVERING'`);
      return row?.locked_by ?? false;
    });
    assert.match(claimed, /^relay-eu-1\//);
  } finally {
    silent.closeAllConnections();
    silent.close();
  }
});

test("B5 prune deletes delivered and dead rows by their age, and nothing else", async () => {
  await using it = await opened();
  const env = environmentOf(it, await freePort());
  const prune = async (...args: string[]) => {
    const { code, stderr, stdout } = await runCommand(["prune", ...args, "-o", "json"], env);
    assert.equal(code, 0, stderr);
    const { delivered, dead } = JSON.parse(stdout) as { delivered: number; dead: number };
    return { delivered, dead };
  };
  await write(it, 5, "status, delivered_at", "'DELIVERED', now() - interval '8 days'");
  await write(it, 4, "status, delivered_at", "'DELIVERED', now() - interval '6 days'");
  await write(it, 3, "status, updated_at", "'DEAD', now() - interval '31 days'");
  await write(it, 2, "status, updated_at", "'DEAD', now() - interval '29 days'");
  await write(it, 6, "status, created_at, updated_at", "'PENDING', now() - interval '1 y', now() - interval '1 y'");
  const both = ["--delivered-age", "7d", "--dead-age", "30d"];
  assert.deepEqual(await prune(...both, "--dry-run"), { delivered: 5, dead: 3 });
  assert.deepEqual(await prune("--delivered-age", "7d"), { delivered: 5, dead: 0 });
  assert.deepEqual(await prune(...both), { delivered: 0, dead: 3 });
  const left = await it.sql<{ status: string; count: number }>(
    `select status, count(*)::int from ${TABLE} group by 1 order by 1`,
  );
  assert.deepEqual(
    left.map(({ count, status }) => `${status} ${count}`),
    ["DEAD 2", "DELIVERED 4", "PENDING 6"],
  );
  const aimless = await runCommand(["prune"], env);
  assert.deepEqual([aimless.code, /--delivered-age or --dead-age/.test(aimless.stderr)], [2, true]);
});

test("B5 pruning a dead event discards its letter, and lets the later events of its key continue", async () => {
  await using it = await opened();
  const refusing = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => response.writeHead(Buffer.concat(chunks).toString() === "1" ? 422 : 200).end());
  }).listen(0, "127.0.0.1");
  await once(refusing, "listening");
  try {
    const { port: receiver } = refusing.address() as AddressInfo;
    const publisher = { PUBLISHER_TYPE: "http", PUBLISHER_URL: `http://127.0.0.1:${receiver}/` };
    const env = { ...environmentOf(it, await freePort()), ...publisher, ON_EXHAUSTED: "park" };
    const [dead] = await write(it, 1);
    await using _running = startService(["run"], env);
    const statusOf = async (id: string | undefined) =>
      (await it.sql<{ status: string }>(`select status from ${TABLE} where event_id = $1`, [id]))[0]?.status;
    await until("the event is dead", async () => (await statusOf(dead)) === "DEAD");
    const [follower] = (await it.sql<{ event_id: string }>(
      `insert into ${TABLE} (event_id, event_type, partition_key, payload)
       values (gen_random_uuid(), 'order.placed', 'key-1', '2') returning event_id`,
    )) as [{ event_id: string }];
    const { code, stdout, stderr } = await runCommand(["prune", "--dead-age", "0s"], env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /public\.shop_events: deleted 0 delivered and 1 dead events/);
    await until("the follower goes out", async () => (await statusOf(follower.event_id)) === "DELIVERED");
    const [letter] = await it.sql<{ resolution: string }>("select resolution from outbox_relay.failed_events");
    assert.equal(letter?.resolution, "discarded");
  } finally {
    refusing.closeAllConnections();
    refusing.close();
  }
});
