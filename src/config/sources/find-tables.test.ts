import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import type { ServiceConfig } from "../service-config.ts";
import { sourceName, TableFinder } from "./find-tables.ts";

let server: PostgresServer;
let database: Database;
before(async () => {
  server = await startPostgres({ version: 15 });
  await server.query(`
    create schema shop; create schema billing; create schema "Odd, one"; create schema outbox_relay; create schema empty;
    create table shop.outbox (id int primary key, event_type text, payload text, published boolean, created_at timestamptz);
    create table shop.outbox_events (event_id int primary key, event_name text, data text, status text, next_attempt_at timestamptz,
      occurred_at timestamptz);
    create table billing.outbox (id int primary key, intent jsonb, created_at timestamptz, delivered_at timestamptz);
    create table billing.mine (id int primary key, event_type text, payload text, done boolean, created_at timestamptz);
    create table "Odd, one".openoutbox_events (event_id uuid, partition_key text, status text, available_at timestamptz,
      locked_by text, locked_at timestamptz);
    create table outbox_relay.outbox (id int);
    create view empty.outbox as select 1 as id`);
  database = openDatabase({ url: server.url });
});
after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

const NO_LOGS: ServiceConfig["logs"] = {
  named: [],
  walPreset: null,
  wal: {},
  start: "beginning",
  lagMaxMs: null,
  managed: { payload: "text", partition: "1 day", wakeUp: false },
};

async function found(
  sources: Partial<ServiceConfig["sources"]>,
  { logs = {}, subscribers = [] }: { logs?: Partial<ServiceConfig["logs"]>; subscribers?: string[] } = {},
): Promise<string[]> {
  const finder = new TableFinder(database, {
    sources: { schemas: [], tables: [], columns: {}, claimLeaseMs: null, only: [], ...sources },
    logs: { ...NO_LOGS, ...logs },
    subscribers: subscribers.map((name) => ({ name }) as ServiceConfig["subscribers"][number]),
  });
  const tables = await finder.find();
  assert.deepEqual(await finder.find(), tables, "a second look finds the same");
  return tables.map((it) => {
    const kind = it.isDebezium ? `${it.preset} (debezium)` : it.preset;
    return `${sourceName(it)} ${it.isThere ? kind : "missing"}`;
  });
}

test("A15 the schemas' tables are found under all usual names, and their kind is detected by their columns", async () => {
  assert.deepEqual(await found({ schemas: ["shop", "billing", "Odd, one"] }), [
    "Odd, one.openoutbox_events openoutbox",
    "billing.outbox intent",
    "shop.outbox flag",
    "shop.outbox_events worker",
  ]);
});

test("A15 * finds every schema but the relay's own", async () => {
  assert.deepEqual(await found({ schemas: "*" }), [
    "Odd, one.openoutbox_events openoutbox",
    "billing.outbox intent",
    "shop.outbox flag",
    "shop.outbox_events worker",
  ]);
});

test("A7 a missing table is listed under its expected name", async () => {
  assert.deepEqual(await found({ schemas: ["nowhere", "shop", "empty"], tables: ["x.openoutbox_events"] }), [
    "shop.outbox flag",
    "shop.outbox_events worker",
    "nowhere.outbox missing",
    "empty.outbox missing",
    "x.openoutbox_events missing",
  ]);
});

test("A6 a table with a custom name is found, with custom column names", async () => {
  const columns = { flags: ["done"] };
  assert.deepEqual(await found({ tables: ["billing.mine"], columns }), ["billing.mine flag"]);
});

test("D9 a managed outbox is detected by its columns, other logs are named; each is listed once per subscriber", async () => {
  await server.query(`
    create schema logs;
    create table logs.outbox (id bigint, xid xid8, event_id uuid, event_type text, event_key text, payload text,
      headers jsonb, correlation_id text, traceparent text, tracestate text, created_at timestamptz);
    create table logs.events (position bigint, event_type text, data jsonb);
    create table logs.outboxevent (id uuid, aggregatetype text, aggregateid text, type text, payload jsonb)`);
  const named: ServiceConfig["logs"]["named"] = [
    { schema: "logs", table: "events", preset: "tail" },
    { schema: "logs", table: "outboxevent", preset: "wal" },
    { schema: "message", table: "shop", preset: "wal" },
    { schema: "logs", table: "later", preset: "managed" },
  ];
  assert.deepEqual(await found({ schemas: ["logs"] }, { logs: { named } }), [
    "logs.events tail",
    "logs.outbox managed",
    "logs.outboxevent wal (debezium)",
    "message.shop wal",
    "logs.later missing",
  ]);
  const plain = await found({}, { logs: { named, walPreset: "plain" } });
  assert.ok(plain.includes("logs.outboxevent wal"), String(plain));
  assert.deepEqual(
    await found({ schemas: ["shop"] }, { logs: { named: named.slice(0, 1) }, subscribers: ["a", "b"] }),
    ["logs.events@a tail", "logs.events@b tail", "shop.outbox flag", "shop.outbox_events worker"],
  );
});
