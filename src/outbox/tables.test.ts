import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { makeHostile } from "../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import type { Message } from "../core/event.ts";
import { migrateUp } from "../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../postgres/pool.ts";
import { memoryPublisher } from "../publishers/memory/memory-publisher.ts";
import { createRelay } from "../relay/relay.ts";
import { openOutboxSource } from "../sources/postgres/openoutbox/openoutbox-source.ts";
import { postgresSource } from "../sources/postgres/postgres-source.ts";
import { createOutbox, outboxTableSql } from "./index.ts";
import type { NewEvent } from "./new-event.ts";

let server: PostgresServer;
/** Prepares tables and reads them. */
let admin: pg.Client;
/** The application: its session has every hostile default, the search path among them. */
let client: pg.Client;
let database: Database;

before(async () => {
  server = await startPostgres({ version: 15 });
  await server.query("create role app login superuser");
  await makeHostile(server, "app");
  const url = server.databaseUrl("postgres", "app");
  admin = new pg.Client(server.url);
  client = new pg.Client(url);
  await Promise.all([admin.connect(), client.connect()]);
  database = openDatabase({ url });
  await migrateUp(database);
});
after(async () => {
  await database.close();
  await Promise.all([admin.end(), client.end()]);
  await server[Symbol.asyncDispose]();
});

async function write(table: string, events: readonly NewEvent[]): Promise<number> {
  await client.query("begin read write");
  const written = await createOutbox({ table }).write(client, events);
  await client.query("commit");
  return written;
}

/** The messages that a relay reads from the table. */
async function relayed(table: string): Promise<readonly Message[]> {
  const isOpen = table.endsWith("openoutbox_events");
  const source = isOpen ? openOutboxSource({ database, table }) : postgresSource({ database, table });
  const out = memoryPublisher();
  const relay = createRelay({ sources: [source], destinations: { out } });
  await relay.drain();
  await relay.stop();
  return out.delivered;
}

const TABLES = {
  "flag.outbox": `id uuid primary key, aggregate_id text, aggregate_type text default 'order', event_type text not null,
    payload jsonb, headers jsonb, correlation_id uuid, created_at timestamptz not null default now(),
    published boolean not null`,
  "worker.outbox": `event_id uuid primary key, event_name varchar(100) not null, aggregate_id uuid, payload text not null,
    headers json not null, correlation_id text, occurred_at timestamp not null, status text not null,
    attempts int not null, next_attempt_at timestamptz not null, last_error text`,
  "open.openoutbox_events": `event_id uuid primary key, event_type text not null, partition_key text,
    payload bytea not null, headers jsonb not null default '{}', status text not null default 'PENDING',
    attempts int not null default 0, last_error text, available_at timestamptz not null default now(), locked_by text,
    locked_at timestamptz, delivered_at timestamptz, created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()`,
} as const;

describe("the relay reads what was written into each kind of table", () => {
  for (const [table, columns] of Object.entries({ ...TABLES, "fresh.outbox": null, "bytes.outbox": null })) {
    test(`F5 ${table}: id, type, key, payload, headers, correlation id, and the order within one statement`, async () => {
      await admin.query(`create schema ${table.split(".")[0]}`);
      const fresh = outboxTableSql(table, { payload: table.startsWith("bytes") ? "bytea" : "json" });
      if (columns === null) await client.query(`begin read write; ${fresh} commit`);
      else await admin.query(`create table ${table} (${columns})`);
      const key = "7c1f0000-0000-4000-8000-000000000000";
      const correlationId = "7c1f0000-0000-4000-8000-00000000000c";
      const events = Array.from({ length: 300 }, (_, n) => ({
        type: "order.changed",
        key,
        payload: { n, text: `grün "${n}" \\ '` },
        ...(n % 2 === 0 ? { headers: { tenant: `t${n}` }, correlationId } : {}),
      }));
      assert.equal(await write(table, events.slice(0, 200)), 200);
      for (const event of events.slice(200, 203)) assert.equal(await write(table, [event]), 1);
      assert.equal(await write(table, events.slice(203)), 97);
      const messages = await relayed(table);
      const seen = messages.map(({ topic, key, headers, payload }) => ({
        type: topic,
        key,
        payload: JSON.parse(payload.toString()),
        ...(headers.tenant === undefined
          ? {}
          : { headers: { tenant: headers.tenant }, correlationId: headers["correlation-id"] }),
      }));
      assert.deepEqual(seen, events);
      assert.equal(new Set(messages.map(({ event }) => event.id)).size, 300);
    });
  }

  test("D3 F5 an intent table holds the type together with the intent", async () => {
    await admin.query(`create schema intents; create table intents.outbox (id uuid primary key, intent jsonb not null,
      created_at timestamptz not null, delivered_at timestamptz, attempt_count int not null, last_error text)`);
    assert.equal(await write("intents.outbox", [{ type: "NotifyUser", payload: { user: 7 } }]), 1);
    const [message] = await relayed("intents.outbox");
    assert.equal(message?.topic, "NotifyUser");
    assert.deepEqual(JSON.parse(String(message?.payload)), { type: "NotifyUser", user: 7 });
    for (const payload of ["text", [1], { type: "Other" }]) {
      await assert.rejects(write("intents.outbox", [{ type: "NotifyUser", payload }]), { code: "EVENT_INVALID" });
      await client.query("rollback");
    }
  });

  test("F5 ids that the database generates, and columns that only the application knows", async () => {
    await admin.query(`create schema own; create table own.outbox (id bigint generated always as identity primary key,
      type text not null, aggregatetype text not null, payload json, created_at timestamptz, published_at timestamptz)`);
    const event = { type: "a", payload: 1 };
    await assert.rejects(write("own.outbox", [event]), /no value for aggregatetype/);
    await client.query("rollback");
    assert.equal(await write("own.outbox", [{ ...event, columns: { aggregatetype: "order" } }]), 1);
    assert.equal((await relayed("own.outbox"))[0]?.event.id, "1");
  });

  test("F5 text and bytes are sent unchanged", async () => {
    await admin.query(outboxTableSql("raw.outbox", { payload: "bytea" }));
    const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    await write("raw.outbox", [
      { type: "a", payload: bytes },
      { type: "b", payload: " no JSON " },
    ]);
    const messages = await relayed("raw.outbox");
    assert.deepEqual(
      messages.map(({ payload }) => [...payload]).sort((a, b) => b.length - a.length),
      [[...bytes], [...Buffer.from(" no JSON ")]],
    );
  });
});

describe("an event that the relay could not carry is refused before anything is sent", () => {
  const good = { type: "a", payload: {} };
  const cases: readonly (readonly [string, unknown, RegExp])[] = [
    ["without a type", { payload: 1 }, /type is missing/],
    ["with a type that is not a text", { ...good, type: 7 }, /type is of type number/],
    ["without a payload", { type: "a" }, /payload is missing/],
    ["whose payload is not JSON", { ...good, payload: 1n }, /BigInt/],
    ["whose text is not JSON for a json column", { ...good, payload: "{" }, /not JSON/],
    ["whose bytes are not text", { ...good, payload: Uint8Array.of(0xff) }, /not UTF-8/],
    ["that is too large", { ...good, payload: "x".repeat(1_001) }, /1001 bytes; the maximum is 1000/],
    ["with headers that are not texts", { ...good, headers: { a: 1 } }, /the header a is of type number/],
    ["with a zero character", { ...good, key: "a\0" }, /zero character/],
    ["with half a character", { ...good, headers: { a: "\ud800" } }, /surrogate/],
    ["with an id that is not a UUID", { ...good, id: "7" }, /requires a UUID/],
    ["with an unknown column", { ...good, columns: { nope: 1 } }, /columns names nope/],
    ["that is null", null, /not an object/],
  ];
  for (const [what, event, reason] of cases) {
    test(`F5 an event ${what}`, async () => {
      await admin.query(outboxTableSql("bad.outbox"));
      await client.query("begin read write");
      const outbox = createOutbox({ table: "bad.outbox", payloadBytesMax: 1_000 });
      const refusal = outbox.write(client, [good, event as NewEvent]);
      await assert.rejects(
        refusal,
        (error: Error & { code?: string }) => error.code === "EVENT_INVALID" && reason.test(error.message),
      );
      assert.equal(await outbox.write(client, good), 1);
      await client.query("rollback");
    });
  }

  test("F5 the error for a table without a unique id, or without the right, has the fix", async () => {
    await admin.query(
      "create schema lax; create table lax.outbox (id uuid, type text, payload json, created_at timestamptz, published_at timestamptz)",
    );
    await assert.rejects(write("lax.outbox", [good]), /create unique index on "lax"."outbox" \("id"\)/);
    await client.query("rollback");
    await admin.query("create role reader");
    await client.query("begin read write");
    await client.query("set local role reader");
    await assert.rejects(createOutbox({ table: "lax.outbox" }).write(client, good), { code: "GRANT_MISSING" });
    await client.query("rollback");
  });

  test("A17 F5 a writer needs only INSERT and SELECT of the id", async () => {
    await admin.query(`${outboxTableSql("least.outbox")} create role writer;
      grant usage on schema least to writer; grant insert, select (id) on least.outbox to writer`);
    await client.query("begin read write");
    await client.query("set local role writer");
    const outbox = createOutbox({ table: "least.outbox" });
    assert.equal(await outbox.write(client, [good, good]), 2);
    const { query } = client;
    assert.equal(await outbox.write({ query: query.bind(client) as pg.Client["query"] }, good), 1);
    await client.query("rollback");
  });

  test("F5 a table that changed is read again", async () => {
    await admin.query(outboxTableSql("moving.outbox"));
    const outbox = createOutbox({ table: "moving.outbox" });
    const writeOne = async () => {
      await client.query("begin read write");
      try {
        return await outbox.write(client, { ...good, headers: { a: "b" } });
      } finally {
        await client.query("commit");
      }
    };
    assert.equal(await writeOne(), 1);
    await admin.query("alter table moving.outbox rename column headers to metadata");
    await assert.rejects(writeOne());
    assert.equal(await writeOne(), 1);
  });
});

describe("the trace continues", () => {
  test("C8 F5 an event's own context, that of the active span, and none", async () => {
    await admin.query(outboxTableSql("traced.outbox"));
    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    const active = { traceparent: `00-${"c".repeat(32)}-${"d".repeat(16)}-01`, tracestate: "x=1" };
    const outbox = createOutbox({ table: "traced.outbox", trace: () => active });
    await client.query("begin read write");
    await outbox.write(client, [
      { type: "own", payload: 1, traceparent },
      { type: "active", payload: 1 },
      { type: "header", payload: 1, headers: { Traceparent: "mine" } },
    ]);
    await createOutbox({ table: "traced.outbox" }).write(client, { type: "none", payload: 1 });
    await client.query("commit");
    const { rows } = await admin.query("select event_type, headers from traced.outbox order by position");
    assert.deepEqual(
      rows.map(({ headers }) => headers),
      [{ traceparent }, active, { Traceparent: "mine" }, null],
    );
  });
});
