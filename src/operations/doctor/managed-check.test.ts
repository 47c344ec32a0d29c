import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { pruneManaged } from "../../postgres/managed/managed-retention.ts";
import { managedTableSql } from "../../postgres/managed/managed-table.sql.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { examine } from "./doctor.ts";
import { checkManaged } from "./managed-check.ts";

const WEEK_MS = 7 * 86_400_000;

let server: PostgresServer;
let database: Database;
before(async () => {
  server = await startPostgres({ version: 18, flags: ["-c", "fsync=on"] });
  database = openDatabase({ url: server.url });
  await migrateUp(database);
});
after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

const create = async (schema: string) => {
  const table = { schema, table: "outbox" };
  await server.query(managedTableSql({ table, payload: "text", partition: "1 day", wakeUp: true }));
  return table;
};
const findings = async (schema: string, retentionMs: number | null = WEEK_MS) => {
  const managed = [{ schema, table: "outbox" }];
  const found = await examine({
    database,
    columns: {},
    tables: [],
    managed,
    hasLogs: true,
    destinations: [],
    retentionMs,
  });
  assert.deepEqual(
    found.filter(({ check }) => check === "tables"),
    [],
  );
  return found.filter(({ check }) => check === "managed");
};

test("A17 D9 a healthy managed outbox has no findings, with and without retention", async () => {
  await create("well");
  await server.query("select well.outbox_publish('a', null, '1')");
  assert.deepEqual(await findings("well"), []);
  assert.deepEqual(await findings("well", null), []);
});

test("A17 D9 a missing managed outbox, or another table in its place, is reported with the command that creates it", async () => {
  await server.query("create schema other; create table other.outbox (id int)");
  for (const schema of ["none", "other"]) {
    const [finding] = await findings(schema);
    assert.equal(finding?.what, `There is no managed outbox ${schema}.outbox`);
    assert.equal(finding?.fix, "outbox-relay migrate up");
  }
});

test("A17 D9 a missing partition for tomorrow and rows in DEFAULT are reported", async () => {
  await create("late");
  const parts = await server.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'late.outbox'::regclass",
  );
  for (const { name } of parts.rows) if (!name.endsWith("_default")) await server.query(`drop table ${name}`);
  await server.query("select late.outbox_publish('a', null, '1')");
  const found = await findings("late");
  assert.match(found[0]?.what ?? "", /late\.outbox has no partition for/);
  assert.match(found[1]?.what ?? "", /^1 events of late\.outbox are in DEFAULT/);
});

test("A17 D9 the pipeline that blocks retention is reported, since when, and what was dropped unread afterwards", async () => {
  const table = await create("held");
  await server.query(`create table held.old partition of held.outbox for values from ('2020-01-01 00:00Z') to ('2020-01-02 00:00Z');
    insert into held.outbox (event_type, payload, created_at) values ('a', '1', '2020-01-01 00:00Z');
    insert into outbox_relay.pipelines (name, source_schema, source_table, lanes) values ('held->dead', 'held', 'outbox', 1);
    insert into outbox_relay.lanes (pipeline, lane) values ('held->dead', 0)`);
  const [finding] = await findings("held");
  assert.match(
    finding?.what ?? "",
    /^held->dead has blocked the drop of held\.old since 2020-01-09T00:00:00Z: .+last progress: never/,
  );
  await pruneManaged(database, table, { olderThanMs: WEEK_MS, lagMaxMs: WEEK_MS });
  const [lost, ...rest] = await findings("held");
  assert.deepEqual(rest, []);
  assert.equal(lost?.severity, "error");
  assert.match(lost?.what ?? "", /^rows were dropped unread: 1 events that held->dead had not read/);
  assert.match((await findings("held"))[0]?.fix ?? "", /limit/);
});

test("A17 D9 a writer that stays in its transaction is named, with the consequence", async () => {
  await create("slow");
  const writer = new pg.Client({ connectionString: server.url, application_name: "importer" });
  await writer.connect();
  await writer.query("begin; select slow.outbox_publish('a', null, '1')");
  assert.deepEqual(await findings("slow"), []);
  const subject = { database, columns: {}, tables: [], destinations: [], retentionMs: null };
  const [finding] = await checkManaged(subject, { schema: "slow", table: "outbox" }, 1);
  const { rows } = await writer.query("select pg_backend_pid() as pid");
  assert.match(finding?.what ?? "", new RegExp(`for 0 minutes \\(postgres, importer, pid ${rows[0]?.pid}, idle in`));
  assert.match(finding?.what ?? "", /no event is lost, its events are read after it commits/);
  await writer.query("rollback");
  await writer.end();
});

test("A17 D9 a disabled wake-up trigger is reported, and creating it again fixes it", async () => {
  await create("mute");
  await server.query("alter table mute.outbox disable trigger outbox_ring");
  const [finding] = await findings("mute");
  assert.match(finding?.what ?? "", /wake-up trigger of mute\.outbox is gone or disabled/);
  assert.equal(finding?.fix, "MANAGED_WAKE_UP=true outbox-relay migrate up");
  await create("mute");
  assert.deepEqual(await findings("mute"), []);
});
