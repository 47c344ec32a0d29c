import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { makeHostile } from "../../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { RelayError } from "../../core/errors.ts";
import { grantsFor } from "../../postgres/grants.ts";
import { postgresMembership } from "../../postgres/membership.ts";
import { migrateDown, migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { examine } from "./doctor.ts";
import type { DoctorDestination, DoctorSubject, Finding } from "./finding.ts";

let server: PostgresServer;
let owner: Database;
let database: Database;

const TABLE = { schema: "app", table: "outbox", isOpenOutbox: false, isThere: true };
const NOWHERE: DoctorDestination = {
  name: "stdout",
  brokers: [],
  rulesFor: () => null,
  namedTopics: () => [],
  topicsOf: ({ type }) => [type],
};

before(async () => {
  server = await startPostgres({ version: 18, flags: ["-c", "autovacuum=off", "-c", "fsync=on"] });
  await server.query("create role relay login");
  owner = openDatabase({ url: server.url });
  database = openDatabase({ url: server.databaseUrl("postgres", "relay") });
});
after(async () => {
  await Promise.all([owner.close(), database.close()]);
  await server[Symbol.asyncDispose]();
});

/** A set-up without findings. */
beforeEach(async () => {
  await server.query(`drop schema if exists app cascade; drop schema if exists outbox_relay cascade; create schema app;
    alter role relay reset all; grant all on database postgres to relay`);
  await migrateUp(owner);
  await createTable("position bigint generated always as identity", "(position) where published_at is null");
});

async function createTable(columns: string, index: string | null, flags = "published_at timestamptz"): Promise<void> {
  await server.query(`drop table if exists app.outbox; create table app.outbox (id uuid primary key default gen_random_uuid(),
      aggregate_id text, event_type text not null default 'order.placed', payload jsonb default '{}', ${columns}, ${flags});
    ${index === null ? "" : `create index on app.outbox ${index};`}`);
  await server.query(grantsFor({ role: "relay", tables: [TABLE] }));
}

async function findings(changes: Partial<DoctorSubject> = {}): Promise<readonly Finding[]> {
  const subject = { database, columns: {}, tables: [TABLE], destinations: [NOWHERE], retentionMs: null };
  return await examine({ ...subject, ...changes });
}

const checksOf = (found: readonly Finding[]) => found.map(({ check, severity }) => `${severity} ${check}`);

test("A17 a healthy set-up has no findings", async () => {
  assert.deepEqual(await findings(), []);
});

test("F4 destinations that share a table get the index that keeps each from scanning the others' events", async () => {
  const rules = (mine: boolean) => [
    { pattern: "it's.broken", mine },
    { pattern: "*", mine: !mine },
  ];
  const destinations = [
    { ...NOWHERE, name: "narrow", rulesFor: () => rules(true) },
    { ...NOWHERE, name: "rest", rulesFor: () => rules(false) },
  ];
  const found = await findings({ destinations });
  assert.deepEqual(checksOf(found), ["warning index", "warning index"]);
  assert.match(found[0]!.fix, /where "published_at" is null and "event_type" collate "C" in \('it''s\.broken'\);$/);
  assert.match(found[1]!.fix, /and \("event_type" is null or "event_type" collate "C" not in \('it''s\.broken'\)\);$/);
  for (const { fix } of found) await server.query(fix);
  assert.deepEqual(await findings({ destinations }), []);
});

test("A3 an order by now() gives a warning, and each of the two fixes ends it", async () => {
  await createTable("created_at timestamptz not null default now()", "(created_at) where published_at is null");
  const [found, ...others] = await findings();
  assert.deepEqual([others, found?.check, found?.severity], [[], "order", "warning"]);
  assert.match(found?.what ?? "", /^app\.outbox has no sequence, .* "created_at", whose default is now\(\)/);
  const [identity = "", cheaper = ""] = found?.fix.split("\n-- or, cheaper: ") ?? [];
  await server.query(cheaper);
  assert.deepEqual(await findings(), []);
  await server.query(
    "alter table app.outbox alter created_at set default now(); insert into app.outbox default values",
  );
  await server.query("insert into app.outbox (created_at) select created_at from app.outbox, generate_series(1, 4)");
  assert.match((await findings())[0]?.what ?? "", /; 4 of 5 checked rows share theirs with another$/);
  await server.query(identity);
  assert.deepEqual(checksOf(await findings()), ["warning index"], "the index still uses the time");
});

test("A17 a table without a key column has no order, and the printed statement gives it one", async () => {
  await server.query("alter table app.outbox drop column aggregate_id");
  const [found, ...others] = await findings();
  assert.deepEqual([others, found?.check, found?.severity], [[], "order", "warning"]);
  assert.equal(found?.what, "app.outbox has no key column, so its events are delivered in no order");
  await server.query(found?.fix ?? "");
  assert.deepEqual(await findings(), []);
});

test("A17 C5 a worker's table without a key column is delivered in its order, which is a note and no fault", async () => {
  await server.query(`create table app.room (event_id uuid primary key, event_name text, payload jsonb, status text not null,
      next_attempt_at timestamptz, occurred_at timestamptz not null default clock_timestamp());
    create index on app.room (occurred_at) where status = 'Pending'; grant select, update on app.room to relay`);
  const room = { ...TABLE, table: "room" };
  const [found, ...others] = await findings({ tables: [room] });
  assert.deepEqual([others, found?.check, found?.severity], [[], "order", "note"]);
  assert.match(found?.what ?? "", /^app\.room has no key column, so one lane delivers it in its order/);
  await server.query(found?.fix ?? "");
  assert.deepEqual(await findings({ tables: [room] }), []);
});

test("A17 an event table and a table of the write-ahead log without a key column have no order either", async () => {
  const columns = "event_id uuid unique default gen_random_uuid(), event_type text, payload text";
  await server.query(`create table app.events (position bigint generated always as identity primary key, ${columns});
    create table app.logged (${columns}); create table app.routed (id uuid unique, aggregatetype text, type text, payload text);
    grant select on app.events, app.logged, app.routed to relay`);
  const [events, logged] = [
    { schema: "app", table: "events" },
    { schema: "app", table: "logged" },
  ];
  const routed = { schema: "app", table: "routed", isDebezium: true };
  const subject = { eventTables: [events, logged, routed], wal: [logged, routed] };
  const keys = async () => (await findings(subject)).filter(({ check }) => check === "order");
  const found = await keys();
  assert.deepEqual(
    found.map(({ severity, what }) => `${severity}: ${what}`),
    ["events", "logged", "routed"].map(
      (name) => `warning: app.${name} has no key column, so its events are delivered in no order`,
    ),
  );
  for (const { fix } of found) await server.query(fix);
  assert.deepEqual(await keys(), []);
});

test("A17 D9 an event table without the index it is read by is found, partitioned or not, and the printed one works", async () => {
  const columns = `position bigint generated always as identity, event_id uuid default gen_random_uuid(), aggregate_id text,
    event_type text, payload text, xid xid8 default pg_current_xact_id()`;
  await server.query(`create table app.whole (${columns}); create table app.parts (${columns}) partition by list (event_type);
    create table app.part partition of app.parts default; grant select on app.whole, app.parts to relay`);
  const eventTables = ["whole", "parts"].map((table) => ({ schema: "app", table }));
  const indexes = async () => (await findings({ eventTables })).filter(({ check }) => check === "index");
  const found = await indexes();
  const faults = ["whole", "parts"].map((name) => `app.${name} has no index to find new rows by`);
  assert.equal(found.map(({ what }) => what).join(), faults.join());
  for (const { fix } of found) await server.query(fix);
  assert.deepEqual(await indexes(), []);
});

test("A17 what a destination reports is shown in its words, and no further check runs", async () => {
  let asked = 0;
  const destination: DoctorDestination = {
    ...NOWHERE,
    name: "rabbit",
    examine: async () => [{ severity: "error", reason: "RabbitMQ at h:1: the password is wrong" }],
    examineTransactions: async () => {
      asked += 1;
      return [];
    },
  };
  const [found, ...others] = await findings({ destinations: [destination] });
  assert.deepEqual([others, found?.check, asked], [[], "destination", 0]);
  assert.equal(found?.what, "rabbit: RabbitMQ at h:1: the password is wrong");
  const failing = async () => {
    throw new RelayError("CONFIG_INVALID", "the RabbitMQ client is missing, install it: npm install amqplib.");
  };
  const [missing] = await findings({ destinations: [{ ...destination, examine: failing }] });
  assert.match(missing?.what ?? "", /^rabbit: the RabbitMQ client is missing, install it: npm install amqplib/);
});

for (const [name, flags, condition] of [
  ["a time", "published_at timestamptz", '"published_at" is null'],
  ["a flag", "published boolean not null default false", '"published" = false'],
  ["a status", "status text not null default 'Pending', next_attempt_at timestamptz", `"status" = 'Pending'`],
] as const) {
  test(`A17 a missing partial index is found, and the printed one works: marked by ${name}`, async () => {
    await createTable("position bigint generated always as identity", "(position)", flags);
    const [found, ...others] = await findings();
    assert.deepEqual([others, found?.check], [[], "index"]);
    assert.equal(found?.fix, `create index concurrently on "app"."outbox" ("position") where ${condition};`);
    await server.query(found?.fix ?? "");
    assert.deepEqual(await findings(), []);
  });
}

test("A17 H1 a partitioned table gets an index that PostgreSQL can build there, and is found to have it", async () => {
  await server.query(`drop table app.outbox; create table app.outbox (id uuid default gen_random_uuid(), aggregate_id text,
      event_type text not null, payload jsonb, position bigint generated always as identity, published_at timestamptz,
      region text not null, primary key (region, id)) partition by list (region);
    create table app.outbox_eu partition of app.outbox for values in ('eu');
    create table app.outbox_us partition of app.outbox for values in ('us')`);
  await server.query(grantsFor({ role: "relay", tables: [TABLE] }));
  const [found, ...others] = await findings();
  assert.deepEqual([others, found?.check], [[], "index"]);
  assert.match(found?.fix ?? "", /^create index on "app"\."outbox" \("position"\) where "published_at" is null; -- /);
  await server.query(found?.fix ?? "");
  assert.deepEqual(await findings(), []);
});

test("G3 a missing, an older and a newer schema are distinguished", async () => {
  await server.query("update outbox_relay.schema_versions set version = version + 100, serves_from = version + 100");
  assert.match(
    (await findings())[0]?.what ?? "",
    /^The schema outbox_relay has version \d+, this program supports \d+$/,
  );
  await server.query("update outbox_relay.schema_versions set version = version - 100, serves_from = version - 100");
  await migrateDown(owner, 2);
  const [older] = await findings();
  assert.deepEqual([older?.check, older?.fix], ["schema", "outbox-relay migrate up"]);
  await migrateDown(owner, 0);
  assert.match((await findings())[0]?.what ?? "", /does not exist$/);
});

test("A17 missing grants are found, with the statements that give exactly these", async () => {
  await server.query(
    "revoke all on app.outbox from relay; revoke usage on schema app from relay; revoke insert on outbox_relay.holds, outbox_relay.audit, outbox_relay.replay_plans from relay",
  );
  const [found, ...others] = await findings({ retentionMs: 1 });
  assert.deepEqual([others, found?.check, found?.severity], [[], "grants", "error"]);
  assert.match(
    found?.what ?? "",
    /^The role relay lacks (usage|select|update|delete|, )+ on app\.outbox; insert on outbox_relay\.audit; insert on outbox_relay\.holds; insert on outbox_relay\.replay_plans$/,
  );
  await server.query(found?.fix ?? "");
  assert.deepEqual(await findings({ retentionMs: 1 }), []);
});

test("A17 a missing table, one without the columns, and no table at all", async () => {
  const missing = await findings({ tables: [{ ...TABLE, table: "none", isThere: false }] });
  assert.match(missing[0]?.what ?? "", /^The table app\.none does not exist$/);
  await server.query("alter table app.outbox drop column payload");
  assert.match((await findings())[0]?.what ?? "", /^app\.outbox has no column for the payload/);
  assert.deepEqual(checksOf(await findings({ tables: [] })), ["error tables"]);
});

test("H1 two deployments that read the same events are found", async () => {
  await server.query(`insert into outbox_relay.pipelines (name, source_schema, source_table, lanes)
    values ('app.outbox->kafka', 'app', 'outbox', 1), ('app.outbox->rabbit', 'app', 'outbox', 1)`);
  const join = (end: string) =>
    server.query(`insert into outbox_relay.instances (id, name, pipelines, lease_ms, alive_until, takes, service)
      values (gen_random_uuid(), 'host-${end}', array['app.outbox->${end}'], 60000, now() + interval '1 hour',
        '{"app.outbox->${end}": null}', 'shop')`);
  await join("kafka");
  assert.deepEqual(checksOf(await findings()).includes("error owners"), false);
  await join("rabbit");
  const found = (await findings()).find(({ check, severity }) => check === "owners" && severity === "error");
  assert.match(found?.what ?? "", /app\.outbox is read by another deployment too: app\.outbox->rabbit on host-rabbit/);
  await server.query("delete from outbox_relay.instances; delete from outbox_relay.pipelines");
});

test("H1 row-level security that may hide rows is found, and the printed statement ends it", async () => {
  const hidden = async () => (await findings()).filter(({ check }) => check === "row security");
  await server.query("alter table app.outbox enable row level security");
  const [found] = await hidden();
  assert.equal(found?.severity, "error");
  assert.match(found?.what ?? "", /app\.outbox is active for the role relay \(no policy shows it any row\)/);
  await server.query(found?.fix ?? "");
  assert.deepEqual(await hidden(), []);
  await server.query("create policy narrow on app.outbox as restrictive using (published_at is null)");
  const [restrictive] = await hidden();
  assert.match(restrictive?.fix ?? "", /^alter role "relay" bypassrls; -- the restrictive narrow/);
  await server.query("alter table app.outbox disable row level security");
  assert.deepEqual(await findings(), []);
});

test("H1 D9 row-level security is found on event tables too, but not where the write-ahead log is read", async () => {
  const [read, decoded] = ["read", "decoded"].map((table) => ({ schema: "app", table }));
  await server.query(`create table app.read (id uuid primary key, position bigint); alter table app.read enable row level security;
    create table app.decoded (like app.read including all); alter table app.decoded enable row level security;
    grant select on app.read, app.decoded to relay`);
  const subject = { eventTables: [read!, decoded!], wal: [decoded!] };
  const [found, ...others] = (await findings(subject)).filter(({ check }) => check === "row security");
  assert.deepEqual([others, found?.severity], [[], "error"]);
  assert.match(
    found?.what ?? "",
    /app\.read is active for the role relay .*hidden rows are neither delivered nor counted$/,
  );
  await server.query(found?.fix ?? "");
  assert.deepEqual(
    (await findings(subject)).filter(({ check }) => check === "row security"),
    [],
  );
});

test("H1 an id that is not unique by itself is found, and the printed statement helps", async () => {
  await server.query("alter table app.outbox drop constraint outbox_pkey");
  const [found, ...others] = await findings();
  assert.deepEqual([others, found?.check, found?.severity], [[], "tables", "error"]);
  assert.match(found?.what ?? "", /^Column id of app\.outbox .* not unique: the table has no primary key/);
  await server.query(/create unique index .*;/.exec(found?.what ?? "")?.[0] ?? "");
  assert.deepEqual(await findings(), []);
});

test("A10 a large table of delivered events without retention, autovacuum off, and bloat give warnings", async () => {
  await server.query(`insert into app.outbox (published_at) select now() from generate_series(1, 120000); analyze app.outbox;
    alter table app.outbox set (autovacuum_enabled = off)`);
  const found = await findings();
  assert.deepEqual(checksOf(found), ["warning retention", "warning vacuum"]);
  assert.match(found[0]?.what ?? "", /holds about 120000 events .* RETENTION is not set/);
  assert.match(found[0]?.fix ?? "", /^RETENTION=7d\ngrant delete on "app"\."outbox" to "relay";$/);
  await server.query(found[1]?.fix ?? "");
  assert.deepEqual(checksOf(await findings({ retentionMs: 1 })), ["error grants"], "which retention needs");
});

test("A17 harmful settings of the role are found, and their fixes work", async () => {
  await server.query("alter role relay set synchronous_commit = off");
  const fresh = openDatabase({ url: server.databaseUrl("postgres", "relay"), applicationName: "settings" });
  try {
    const found = await findings({ database: fresh });
    assert.deepEqual(checksOf(found), ["warning settings"]);
    assert.equal(found[0]?.fix, "alter system set synchronous_commit = on; select pg_reload_conf();");
  } finally {
    await fresh.close();
    await server.query("alter role relay reset all");
  }
});

test("H1 time zone, date style, search path and other defaults of the role are no problem", async () => {
  await makeHostile(server, "relay");
  const fresh = openDatabase({ url: server.databaseUrl("postgres", "relay"), applicationName: "hostile" });
  try {
    assert.deepEqual(await findings({ database: fresh }), await findings());
  } finally {
    await fresh.close();
    await server.query("alter role relay reset all");
  }
});

test("A17 a restored copy, and lanes without an instance", async () => {
  await server.query(`update outbox_relay.identity set system_id = '1';
    insert into outbox_relay.pipelines (name, source_schema, source_table, lanes) values ('p', 'app', 'outbox', 1);
    insert into outbox_relay.lanes (pipeline, lane) values ('p', 0)`);
  const found = await findings();
  assert.deepEqual(checksOf(found), ["error identity", "warning lanes"]);
  assert.match(found[1]?.what ?? "", /^Lanes without a live owner: p \(1\)$/);
  await server.query("update outbox_relay.pipelines set paused_at = now()");
  assert.deepEqual(checksOf(await findings()), ["error identity"], "an operator has paused it");
});

test("A17 brokers that do not answer, missing topics and refused transactions", async () => {
  await server.query("insert into app.outbox (event_type) values ('order.placed'), ('order.paid')");
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const there = `127.0.0.1:${(listener.address() as { port: number }).port}`;
  const asked: string[][] = [];
  const destination: DoctorDestination = {
    ...NOWHERE,
    name: "kafka",
    brokers: [there, "127.0.0.1:1"],
    topicsOf: ({ type }, { schema }) => [`${schema}.${type}`],
    examineTransactions: async () => {
      throw new RelayError("TRANSACTIONS_REFUSED", "The user relay lacks Write on the transactional id");
    },
    missingTopics: async (topics) => {
      asked.push([...topics].sort());
      return new Map([["app.order.paid", "it does not exist"]]);
    },
  };
  try {
    const found = await findings({ destinations: [destination] });
    assert.deepEqual(checksOf(found), ["error destination", "warning destination", "warning topics"]);
    assert.match(found[0]?.what ?? "", /^kafka: The user relay lacks Write/);
    assert.match(found[0]?.fix ?? "", /DELIVERY=at-least-once/);
    assert.deepEqual(asked, [["app.order.paid", "app.order.placed"]]);
    const down = await findings({ destinations: [{ ...destination, brokers: ["127.0.0.1:1"] }] });
    assert.deepEqual(checksOf(down), ["error destination"], "nothing else can be checked");
  } finally {
    listener.close();
  }
});

test("D6 a waiting type that no running relay handles is found, until one handles it", async () => {
  await server.query("insert into app.outbox (event_type) values ('order.placed'), ('order.paid'), ('it''s new')");
  const join = async (pipeline: string, type: string) => {
    const id = randomUUID();
    await server.query(
      `insert into outbox_relay.pipelines (name, source_schema, source_table, lanes) values ('${pipeline}', 'app', 'outbox', 1)`,
    );
    const takes = { [pipeline]: [{ pattern: type, mine: true }] };
    await postgresMembership(database).join({ id, name: "it", leaseMs: 60_000, pipelines: [pipeline], takes });
  };
  assert.deepEqual(await findings(), [], "no instance runs, so nothing is known");
  await join("a", "order.placed");
  const [found, ...others] = await findings();
  assert.deepEqual([others, found?.check, found?.severity], [[], "takers", "error"]);
  assert.equal(found?.what, "Events wait in app.outbox that no running relay handles: it's new (1), order.paid (1)");
  assert.match(found?.fix ?? "", /^outbox-relay run --only 'it'\\''s new'$/m);
  await join("b", "order.paid");
  assert.match((await findings())[0]?.what ?? "", /handles: it's new \(1\)$/);
  await join("c", "it's*");
  assert.deepEqual(await findings(), []);
});
