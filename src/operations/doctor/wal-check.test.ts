import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { SPEC } from "../../testing/contracts/store-stage.ts";
import { openLogSource } from "../logs/log-source.ts";
import type { DoctorSubject } from "./finding.ts";
import { checkWal } from "./wal-check.ts";

let server: PostgresServer;
let database: Database;
let subject: DoctorSubject;

const TABLE = { schema: "public", table: "outbox" };

before(async () => {
  server = await startPostgres({ version: 18 });
  database = openDatabase({ url: server.url });
  subject = { database, columns: {}, tables: [], wal: [TABLE], destinations: [], retentionMs: null };
});
after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await setting("max_slot_wal_keep_size", "50GB");
  await server.query("select pg_drop_replication_slot(slot_name) from pg_replication_slots");
  await server.query(
    "drop schema if exists outbox_relay cascade; create table if not exists outbox (id int, type text, payload text); truncate outbox",
  );
  await migrateUp(database);
});

async function setting(name: string, value: string): Promise<void> {
  await server.query(`alter system set ${name} = '${value}'`);
  await server.query("select pg_reload_conf()");
}

/** A pipeline that has started to read. */
async function begin(): Promise<void> {
  const reader = { subscriber: null, columns: {}, start: "beginning", lagMaxMs: null } as const;
  const source = openLogSource({ ...reader, database, table: TABLE, preset: "wal" });
  const store = source.pipeline({ ...SPEC, name: "log->bus" });
  await store.prepare();
  const { id } = { id: "00000000-0000-4000-8000-000000000001" };
  await source.membership.join({ id, name: "x", leaseMs: 60_000, pipelines: ["log->bus"] });
  await store.takeOver(id, [0]);
  await source.close();
}

const findings = async () =>
  (await checkWal(subject)).map(({ fix, severity, what }) => `${severity}: ${what} | ${fix}`);

test("A17 D9 a reader of the write-ahead log in good order has no findings, nor has a server without one", async () => {
  assert.deepEqual(await findings(), []);
  await begin();
  assert.deepEqual(await findings(), []);
});

test("A17 D9 without a limit on what a slot keeps, a stopped relay fills the disk", async () => {
  await setting("max_slot_wal_keep_size", "-1");
  assert.match(
    (await findings()).join("\n"),
    /^warning: max_slot_wal_keep_size is not set.*\| alter system set max_slot_wal_keep_size/,
  );
  subject = { ...subject, wal: [] };
  assert.deepEqual(await findings(), []);
  subject = { ...subject, wal: [TABLE] };
});

test("A17 D9 a slot that is gone, an unclaimed one, and one that standbys do not have are reported", async () => {
  await begin();
  const { rows } = await server.query<{ name: string }>("select slot_name as name from pg_replication_slots");
  const slot = rows[0]?.name ?? "";
  await server.query("select pg_drop_replication_slot($1)", [slot]);
  assert.match(
    (await findings()).join("\n"),
    /^error: The replication slot outbox_relay_log_bus_\w+ of log->bus is gone \| outbox-relay log reset log->bus$/,
  );
  await server.query("select pg_create_logical_replication_slot($1, 'pgoutput')", [slot]);
  await server.query("select pg_create_logical_replication_slot('outbox_relay_old', 'pgoutput')");
  const [unclaimed, alone] = await findings();
  assert.match(
    unclaimed ?? "",
    /outbox_relay_old belongs to no pipeline.*\| select pg_drop_replication_slot\('outbox_relay_old'\);/,
  );
  assert.match(alone ?? "", /not synchronized to standbys.*ALTER_REPLICATION_SLOT/);
});

test("A17 D9 rows that the log does not contain are reported before the first read", async () => {
  await server.query("insert into outbox select i from generate_series(1, 30) i; ");
  await server.query("analyze outbox");
  assert.match((await findings()).join("\n"), /about 30 rows from before its slot.*\| LOG_START=now/);
});

test("H1 a publication that leaves rows or columns out is reported, and its fix works", async () => {
  subject = { ...subject, publication: "limited" };
  await server.query("create publication limited for table outbox (id, type) where (id > 5)");
  const found = await checkWal(subject);
  assert.deepEqual(
    found.map(({ severity, what }) => `${severity}: ${what}`),
    [
      "error: The publication limited has only rows of public.outbox for which (id > 5): the others are never published",
      "warning: The publication limited leaves out columns of public.outbox: payload",
    ],
  );
  for (const statement of (found[0]?.fix ?? "").split("; ")) await server.query(statement);
  assert.deepEqual(await findings(), []);
});
