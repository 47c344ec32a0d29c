import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { type ErrorCode, isRelayError } from "../../core/errors.ts";
import type { ClaimedEvent, Failure, Settlement, Takeover } from "../../ports/queue-store.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import { grantsFor } from "../../postgres/grants.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { postgresSource } from "./postgres-source.ts";

let server: PostgresServer;
let database: Database;
let admin: pg.Client;
let count = 0;

before(async () => {
  server = await startPostgres({ version: 18 });
  await server.query("create role relay login");
  const owner = openDatabase({ url: server.url });
  await migrateUp(owner);
  await owner.close();
  database = openDatabase({ url: server.databaseUrl("postgres", "relay") });
  admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
});

after(async () => {
  await admin.end();
  await database.close();
  await server[Symbol.asyncDispose]();
});

/** A schema with a table, and the whole of it in one instance's hands. `$T` stands for the table. */
async function open(columns: string, options: { names?: ColumnNames; rows?: string } = {}) {
  count += 1;
  const table = { schema: `app${count}`, table: "outbox" };
  const T = `app${count}.outbox`;
  const sql = (text: string, values: unknown[] = []) => admin.query(text.replaceAll("$T", T), values);
  await sql(`create schema app${count}`);
  await sql(`create table $T ${columns}`);
  await admin.query(grantsFor({ role: "relay", tables: [table], retention: true }));
  if (options.rows !== undefined) await sql(options.rows);
  const source = postgresSource({ database, table, columns: options.names ?? {} });
  const spec = { name: `p${count}`, types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1_000_000, headersMax: 10 };
  const store = source.pipeline(spec);
  await store.prepare();
  const id = randomUUID();
  await source.membership.join({ id, name: "test", leaseMs: 60_000, pipelines: [spec.name] });
  const takeover = (await store.takeOver(id, [0]))[0] as Takeover;
  let batch = takeover.settledBatch;
  const settle = async (parts: Partial<Settlement>) => {
    const nothing = { delivered: [], failed: [], handedBack: [], releasedHolds: [], suspects: [] };
    const next = parts.delivered?.length ? batch + 1n : batch;
    const result = await store.settle({
      grant: takeover.grant,
      previousBatch: batch,
      batch: next,
      ledger: "none",
      ...nothing,
      ...parts,
    });
    batch = next;
    return result;
  };
  const read = async (rows = 100) => {
    const run = await store.begin({ grants: [takeover.grant], exceptKeys: [], exceptTypes: [] });
    const events: ClaimedEvent[] = [];
    try {
      for (let page = await run.next(rows, 1e9); page.length > 0; page = await run.next(rows, 1e9))
        events.push(...page);
    } finally {
      await run.end();
    }
    return events;
  };
  return { sql, source, store, grant: takeover.grant, settle, read, table: T };
}

const FLAGS = `(id uuid primary key default gen_random_uuid(), aggregate_id text, event_type text default 't',
  payload jsonb default '{}', created_at timestamptz default now(), published_at timestamptz, published boolean)`;
const typesOf = (events: readonly ClaimedEvent[]) => events.map(({ type }) => type).join(" ");
const retry = (event: ClaimedEvent, attempts: number, reason = "no"): Failure => ({
  id: event.id,
  key: event.key,
  reason,
  attempts,
  next: { kind: "retry", delayMs: 60_000 },
});
const dead = (event: ClaimedEvent, attempts: number): Failure => ({
  ...retry(event, attempts, "gave up"),
  next: { kind: "dead", parks: true },
});
const assertRejects = (promise: Promise<unknown>, code: ErrorCode) =>
  assert.rejects(promise, (error) => isRelayError(error, code) || assert.fail(`not ${code}: ${String(error)}`));

for (const index of ["", "create index on $T (created_at) where published = false"]) {
  test(`A6 all flag columns are read and set together ${index ? "with" : "without"} an index for one of them`, async () => {
    const it = await open(FLAGS);
    if (index) await it.sql(index);
    await it.sql(`insert into $T (event_type, published, published_at) values ('neither', false, null),
      ('no time', true, null), ('no flag', false, now()), ('unknown', null, now()), ('both', true, now())`);
    await it.store.prepare();
    const events = await it.read();
    assert.equal(typesOf(events.toSorted((a, b) => (a.type < b.type ? -1 : 1))), "neither no flag no time unknown");
    await it.settle({ delivered: events.map(({ id }) => id) });
    const { rows } = await it.sql("select count(*) as n from $T where published and published_at is not null");
    assert.equal(rows[0]?.n, "5");
    assert.deepEqual(await it.read(), []);
  });
}

test("A3 events of one transaction come in the order of its statements, across page ends", async () => {
  const it = await open(FLAGS);
  await it.sql("create index on $T (created_at) where published = false");
  for (let transaction = 0; transaction < 6; transaction++) {
    const statements = Array.from({ length: 5 }, (_, n) => {
      const type = `${String(transaction)}.${n}`;
      return `insert into $T (aggregate_id, event_type, published) values ('k', '${type}', false);`;
    });
    await it.sql(`begin; savepoint s; ${statements.join(" release s; savepoint s; ")} commit`);
  }
  const expected = Array.from({ length: 30 }, (_, n) => `${Math.floor(n / 5)}.${n % 5}`).join(" ");
  for (const rows of [5, 6, 7, 9, 29, 30, 100])
    assert.equal(typesOf(await it.read(rows)), expected, `pages of ${rows}`);
});

test("A3 of two transactions at the same moment the earlier one comes first, whatever its commands", async () => {
  const it = await open(FLAGS);
  const at = "timestamptz '2026-01-01'";
  await it.sql(`begin; update $T set event_type = ''; insert into $T (event_type) values ('x'); delete from $T;
    insert into $T (event_type, created_at) values ('first', ${at}); commit`);
  await it.sql(`insert into $T (event_type, created_at) values ('second', ${at})`);
  assert.equal(typesOf(await it.read()), "first second");
});

test("A3 a sequence column orders, whatever the times say", async () => {
  const it = await open(
    `(id bigserial primary key, type text, data text default '', at timestamptz, processed_at timestamp)`,
  );
  await it.sql("insert into $T (type, at) values ('a', now()), ('b', now() - interval '1 day'), ('c', now())");
  assert.equal(typesOf(await it.read(2)), "a b c");
});

test("a row that commits late with an earlier time is shown by the next run", async () => {
  const it = await open(FLAGS);
  const late = new pg.Client({ connectionString: server.url });
  await late.connect();
  await late.query(`begin; insert into ${it.table} (event_type) values ('late')`);
  await it.sql("insert into $T (event_type) values ('early')");
  const first = await it.read();
  await it.settle({ delivered: first.map(({ id }) => id) });
  await late.query("commit");
  await late.end();
  assert.deepEqual([typesOf(first), typesOf(await it.read())], ["early", "late"]);
});

test("events without key, time, payload or type are neither lost nor in the way", async () => {
  const it = await open(FLAGS);
  await it.sql(`insert into $T (aggregate_id, event_type, payload, created_at) values (null, 'a', '1', now()),
    (null, 'b', null, null), (null, null, '2', null), ('k', 'c', '3', null)`);
  const events = await it.read(2);
  assert.equal(typesOf(events.toSorted((a, b) => (a.type < b.type ? -1 : 1))), " a b c");
  const b = events.find(({ type }) => type === "b");
  assert.deepEqual([b?.key, b?.createdAt, b?.payload.length, b?.fault], [null, null, 0, null]);
  assert.equal(events.find(({ type }) => type === "")?.fault?.code, "EVENT_UNREADABLE");
  await it.settle({ delivered: events.map(({ id }) => id) });
  assert.deepEqual(await it.read(), []);
});

const WORKER = `(event_id uuid primary key default gen_random_uuid(), event_name text default 't', aggregate_id text,
  payload text default 'p', status text default 'Pending', attempts smallint default 0, next_attempt_at timestamptz default now(),
  last_error varchar(8), occurred_at timestamptz default clock_timestamp())`;

test("C1 a worker's rows wait for their next attempt, and are Dispatched when delivered", async () => {
  const it = await open(WORKER);
  await it.sql(`insert into $T (event_name, next_attempt_at, status) values ('now', now(), 'Pending'),
    ('later', now() + interval '1 hour', 'Pending'), ('failed', now(), 'Failed'), ('any time', null, 'Pending')`);
  const events = await it.read();
  assert.equal(typesOf(events), "now any time");
  await it.settle({ delivered: events.map(({ id }) => id) });
  const { rows } = await it.sql("select event_name from $T where status = 'Dispatched' order by 1");
  assert.deepEqual(
    rows.map((row) => row.event_name),
    ["any time", "now"],
  );
});

test("C2 a worker's failures are kept in the row; the last one isolates it for a year, and a person can set it back", async () => {
  const it = await open(WORKER, { rows: "insert into $T default values" });
  const [event] = await it.read();
  await it.settle({ failed: [retry(event!, 1, "a long reason")] });
  const failed = (await it.sql("select *, next_attempt_at - now() > interval '50 s' as postponed from $T")).rows[0];
  assert.deepEqual(
    [failed.status, failed.attempts, failed.last_error, failed.postponed],
    ["Pending", 1, "a long r", true],
  );
  await it.settle({ failed: [dead(event!, 2)] });
  const gone = (await it.sql("select *, next_attempt_at - now() > interval '364 days' as isolated from $T")).rows[0];
  assert.deepEqual([gone.status, gone.attempts, gone.isolated], ["Failed", 2, true]);
  assert.equal((await it.store.reviewHolds(it.grant))[0]?.state, "dead");
  await it.sql("update $T set status = 'Pending', next_attempt_at = now()");
  const [hold] = await it.store.reviewHolds(it.grant);
  assert.deepEqual([hold?.state, hold?.attempts, (hold?.dueInMs ?? 1) <= 0], ["retrying", 0, true]);
  const left = await it.sql("select 1 from outbox_relay.failed_events where original_event_id = $1", [event!.id]);
  assert.equal(left.rowCount, 0);
});

test("D3 D4 intents: the type is in the intent, failures and delivery are written into the record", async () => {
  const it =
    await open(`(id uuid primary key default gen_random_uuid(), intent jsonb, created_at timestamptz default clock_timestamp(),
    delivered_at timestamptz, attempt_count int default 0, last_error text)`);
  const intents = ['{"type": "NotifyUser", "user": 1}', '{"SyncToPayroll": {"entry": 2}}', '"Ping"', "5"];
  for (const intent of intents) await it.sql("insert into $T (intent) values ($1)", [intent]);
  const events = await it.read();
  assert.deepEqual(
    events.map(({ type }) => type),
    ["NotifyUser", "SyncToPayroll", "Ping", ""],
  );
  assert.deepEqual(
    events.map(({ payload }) => payload.toString()),
    intents,
  );
  assert.equal(events[3]?.fault?.code, "EVENT_UNREADABLE");
  await it.settle({ delivered: [events[0]!.id], failed: [retry(events[1]!, 1, "down")] });
  const { rows } = await it.sql(
    "select delivered_at is not null as done, attempt_count, last_error from $T order by created_at",
  );
  assert.deepEqual(rows.slice(0, 2), [
    { done: true, attempt_count: 0, last_error: null },
    { done: false, attempt_count: 1, last_error: "down" },
  ]);
});

test("A10 the error of every attempt is kept, but no more than a hundred of them, the first one included", async () => {
  const it = await open(FLAGS, { rows: "insert into $T (aggregate_id) values ('k')" });
  const [event] = await it.read();
  for (let attempt = 1; attempt <= 103; attempt++)
    await it.settle({ failed: [retry(event!, attempt, `error ${attempt} \0`)] });
  await it.settle({ failed: [dead(event!, 104)] });
  const { rows } = await it.sql("select * from outbox_relay.failed_events where original_event_id = $1", [event!.id]);
  const errors: { attempt: number; reason: string; at: string }[] = rows[0].errors;
  assert.deepEqual([errors.length, errors[0]?.attempt, errors[1]?.attempt, errors.at(-1)?.attempt], [100, 1, 6, 104]);
  assert.equal(errors[0]?.reason, "error 1 \u{FFFD}");
  assert.ok(errors.every(({ at }) => !Number.isNaN(Date.parse(at))));
  assert.deepEqual([rows[0].failure_count, rows[0].failure_reason, rows[0].event_key], [104, "gave up", "k"]);
  assert.deepEqual(
    [rows[0].source_schema, rows[0].source_table, rows[0].event_type],
    [it.table.split(".")[0], "outbox", "t"],
  );
  assert.ok(rows[0].first_failed_at < rows[0].last_failed_at);
});

test("a failure of a row that vanished or was marked makes no hold and is reported", async () => {
  const it = await open(FLAGS, { rows: "insert into $T (event_type) values ('a'), ('b'), ('c')" });
  const [a, b, c] = await it.read();
  await it.sql("delete from $T where id = $1", [a!.id]);
  await it.sql("update $T set published = true, published_at = now() where id = $1", [b!.id]);
  const { missing } = await it.settle({ failed: [retry(a!, 1), dead(b!, 1), retry(c!, 1)] });
  assert.deepEqual([...missing].sort(), [a!.id, b!.id].sort());
  assert.deepEqual(
    (await it.store.reviewHolds(it.grant)).map(({ id }) => id),
    [c!.id],
  );
});

test("a row that was changed while its settle waited is marked all the same", async () => {
  const it = await open(FLAGS, { rows: "insert into $T (event_type) values ('a'), ('b')" });
  const events = await it.read();
  const writer = new pg.Client({ connectionString: server.url });
  await writer.connect();
  await writer.query(`begin; update ${it.table} set event_type = 'changed' where id = '${events[0]!.id}'`);
  const settling = it.settle({ delivered: events.map(({ id }) => id) });
  await writer.query("commit");
  await writer.end();
  assert.deepEqual(await settling, { missing: [] });
  assert.deepEqual(await it.read(), []);
});

test("A7 a table may appear, change and disappear: each time the error says what is wrong, and prepare recovers", async () => {
  const it = await open(FLAGS, { rows: "insert into $T default values" });
  const [event] = await it.read();
  await it.sql("alter table $T rename column event_type to kind");
  await assertRejects(it.read(), "COLUMN_MISSING");
  await assertRejects(it.store.prepare(), "COLUMN_MISSING");
  await it.sql("alter table $T rename column kind to event_type");
  await it.store.prepare();
  assert.equal((await it.read()).length, 1);
  await it.sql("revoke update on $T from relay");
  await assertRejects(it.settle({ delivered: [event!.id] }), "GRANT_MISSING");
  await assertRejects(it.store.prepare(), "GRANT_MISSING");
  await it.sql("grant update on $T to relay");
  await it.sql("alter table $T rename to elsewhere");
  await assertRejects(it.read(), "TABLE_MISSING");
  await assertRejects(it.store.probe([it.grant]), "TABLE_MISSING");
  await assertRejects(it.settle({ delivered: [event!.id] }), "TABLE_MISSING");
  await assertRejects(it.store.prepare(), "TABLE_MISSING");
  await it.sql(`alter table ${it.table.replace("outbox", "elsewhere")} rename to outbox`);
  await it.store.prepare();
  await it.settle({ delivered: [event!.id] });
  assert.deepEqual(await it.read(), []);
});

test("A7 a source whose table is missing says so and begins when it appears", async () => {
  const source = postgresSource({ database, table: { schema: "not_yet", table: null } });
  assert.equal(source.name, "not_yet.(outbox or outbox_events)");
  const store = source.pipeline({
    name: "not yet",
    types: null,
    lanes: 1,
    attemptsMax: 3,
    payloadBytesMax: 1,
    headersMax: 1,
  });
  await assertRejects(store.probe([]), "TABLE_MISSING");
  await admin.query(`create schema not_yet; create table not_yet.outbox_events ${FLAGS}`);
  await assertRejects(store.prepare(), "GRANT_MISSING");
  await admin.query(grantsFor({ role: "relay", tables: [{ schema: "not_yet", table: "outbox_events" }] }));
  assert.deepEqual(await store.prepare(), { lanes: 1 });
});

test("G3 a source without the relay's schema names the command that makes it", async () => {
  const source = postgresSource({ database: { url: server.url, relaySchema: "unmade" }, table: "app1.outbox" });
  const store = source.pipeline({
    name: "p",
    types: null,
    lanes: 1,
    attemptsMax: 3,
    payloadBytesMax: 1,
    headersMax: 1,
  });
  await assertRejects(store.prepare(), "SCHEMA_MISSING");
  await assertRejects(store.survey(), "SCHEMA_MISSING");
  await source.close();
});

test("a partitioned table is read, marked and pruned like any other", async () => {
  const it =
    await open(`${FLAGS.replace("primary key ", "").replace("created_at timestamptz", "created_at timestamptz not null")}
    partition by range (created_at)`);
  await it.sql("create table $T_old partition of $T for values from (minvalue) to ('2026-01-01')");
  await it.sql("create table $T_new partition of $T for values from ('2026-01-01') to (maxvalue)");
  await it.sql("insert into $T (event_type, created_at) values ('new', '2026-02-01'), ('old', '2025-02-01')");
  const events = await it.read();
  assert.equal(typesOf(events), "old new");
  await it.settle({ delivered: events.map(({ id }) => id) });
  assert.deepEqual([await it.store.prune(0, 1), await it.store.prune(0, 10), await it.store.prune(0, 10)], [1, 1, 0]);
});

test("pruning without a time of delivery is refused", async () => {
  const it = await open("(id bigserial primary key, type text, data text, published boolean)");
  await assertRejects(it.store.prune(0, 10), "COLUMN_MISSING");
});

const BARE = "type text default 't', data text default '', created_at timestamptz default now(), published boolean";

for (const [what, columns, index] of [
  ["it is only a part of the primary key", `(tenant text, id bigint, ${BARE}, primary key (tenant, id))`, ""],
  ["there is no primary key", `(id uuid, ${BARE})`, ""],
  ["a unique index leaves rows out", `(id int, ${BARE})`, "create unique index on $T (id) where published"],
  ["a unique index is over an expression", `(id text, ${BARE})`, "create unique index on $T (lower(id))"],
  ["an index includes it", `(tenant int, id int, ${BARE})`, "create unique index on $T (tenant) include (id)"],
] as const) {
  test(`H1 a table whose id is not unique is refused with the statement that fixes it: ${what}`, async () => {
    let fix = "";
    const refused = open(columns, index === "" ? {} : { rows: index });
    await assert.rejects(refused, (error) => {
      fix = /Run: (create unique index .*;) \[ID_NOT_UNIQUE\]/.exec(String(error))?.[1] ?? "";
      return isRelayError(error, "ID_NOT_UNIQUE");
    });
    await admin.query(fix);
    const source = postgresSource({ database, table: { schema: `app${count}`, table: "outbox" } });
    const spec = { name: `later ${count}`, types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1, headersMax: 1 };
    assert.deepEqual(await source.pipeline(spec).prepare(), { lanes: 1 });
  });
}

test("H1 where no index can keep ids unique, two rows with one id are never marked by one delivery", async () => {
  const it = await open(`(id bigserial, at int, ${BARE}) partition by range (at)`);
  await it.sql("create table $T_1 partition of $T for values from (0) to (10)");
  await it.sql("insert into $T (id, at) values (7, 1), (8, 2), (7, 3)");
  assert.equal((await it.read()).length, 3);
  const settled = it.settle({ delivered: ["7", "8"] });
  await assert.rejects(
    settled,
    (error) => isRelayError(error, "ID_NOT_UNIQUE") && /have the id 7;/.test(error.message),
  );
  assert.equal((await it.read()).length, 3, "nothing is marked");
  await it.sql("update $T set id = 9 where at = 3");
  assert.deepEqual((await it.settle({ delivered: ["7", "8"] })).missing, []);
  assert.equal((await it.read()).map(({ id }) => id).join(), "9");
});

test("H1 a row without an id is reported instead of being sent again and again", async () => {
  const it = await open(`(id text unique, ${BARE})`, { rows: "insert into $T (id) values (null)" });
  await assertRejects(it.read(), "ID_NOT_UNIQUE");
});
