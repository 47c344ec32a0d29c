import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { until } from "../../../test/servers/until.ts";
import { delivered, rejected } from "../../core/outcome.ts";
import { checkIds } from "../../operations/doctor/table-check.ts";
import type { QueueSource } from "../../ports/queue-store.ts";
import { managedTableSql } from "../../postgres/managed/managed-table.sql.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { memoryPublisher } from "../../publishers/memory/memory-publisher.ts";
import { createRelay } from "../../relay/relay.ts";
import { eventTableSource, managedOutboxSource, walSource } from "./log-sources.ts";
import { postgresSource } from "./postgres-source.ts";

const COLUMNS = `id bigint generated always as identity primary key, event_type text not null, aggregate_id text,
  payload text, other text, headers jsonb`;
const MANAGED = managedTableSql({
  table: { schema: "app", table: "managed" },
  payload: "text",
  partition: "1 day",
  wakeUp: false,
});

/** Each kind of source with the statement that makes its table, and what its columns are called. */
const KINDS: Readonly<
  Record<string, { create: string; key: string; source(database: Database, table: string): QueueSource }>
> = {
  flag: {
    create: `create table app.flag (${COLUMNS}, published_at timestamptz)`,
    key: "aggregate_id",
    source: (database, table) => postgresSource({ database, table }),
  },
  tail: {
    create: `create table app.tail (${COLUMNS}, xid xid8 default pg_current_xact_id()); create index on app.tail (xid, id)`,
    key: "aggregate_id",
    source: (database, table) => eventTableSource({ database, table }),
  },
  horizon: {
    create: `create table app.horizon (${COLUMNS})`,
    key: "aggregate_id",
    source: (database, table) => eventTableSource({ database, table, columns: { xid: null } }),
  },
  managed: {
    create: MANAGED,
    key: "event_key",
    source: (database, table) => managedOutboxSource({ database, table }),
  },
  wal: {
    create: `create table app.wal (${COLUMNS})`,
    key: "aggregate_id",
    source: (database, table) => walSource({ database, table }),
  },
};

describe("tables that break the rules", () => {
  let server: PostgresServer;
  let database: Database;
  before(async () => {
    server = await startPostgres({ version: 18 });
    database = openDatabase({ url: server.url });
    await migrateUp(database);
    await server.query("create schema app");
  });
  after(async () => {
    await database.close();
    await server[Symbol.asyncDispose]();
  });

  for (const [kind, { create, key, source }] of Object.entries(KINDS)) {
    test(`H1 ${kind}: a renamed column stops it with COLUMN_MISSING, nothing is published without it, and it continues once it is back`, async () => {
      await server.query(create);
      const table = `app.${kind}`;
      const out = memoryPublisher();
      const timing = { backoffInitialMs: 20, backoffMaxMs: 100 };
      const relay = createRelay({ sources: [source(database, table)], destinations: { out }, timing });
      const broken: { code: string; reason: string }[] = [];
      let holds = 0;
      relay.on("SourceBroken", (event) => broken.push(event));
      relay.on("IntentRelayFailed", () => (holds += 1));
      const write = (from: number, columns: { key: string; payload: string }) =>
        server.query(`insert into ${table} (event_type, ${columns.key}, ${columns.payload})
          select 'T', 'k' || n, n::text from generate_series(${from}::int, ${from + 9}::int) n`);
      const taken = new Promise<void>((resolve) => relay.on("LaneTaken", () => resolve()));
      await relay.start();
      try {
        // A slot shows what comes after it.
        await taken;
        await write(1, { key, payload: "payload" });
        await out.arrived(10);
        let expected = 10;
        for (const column of [key, "payload"]) {
          broken.length = 0;
          await server.query(`alter table ${table} rename column ${column} to away`);
          await write(expected + 1, {
            key: column === key ? "away" : key,
            payload: column === key ? "payload" : "away",
          });
          await until("the fault is reported", () => broken.some(({ code }) => code === "COLUMN_MISSING"));
          await until("it is reported again and again", () => broken.length >= 3);
          assert.deepEqual([...new Set(broken.map(({ code }) => code))], ["COLUMN_MISSING"]);
          assert.match(broken[0]!.reason, new RegExp(column));
          assert.equal(out.delivered.length, expected, "nothing goes out without it");
          await server.query(`alter table ${table} rename column away to ${column}`);
          expected += 10;
          await write(expected + 1, { key, payload: "payload" });
          expected += 10;
          await out.arrived(expected);
        }
        assert.equal(holds, 0, "no attempt was spent");
        const seen = out.delivered.map((message) => `${message.key} ${message.payload}`);
        const all = Array.from({ length: expected }, (_, n) => `k${n + 1} ${n + 1}`);
        assert.deepEqual(seen.toSorted(), all.toSorted());
      } finally {
        await relay.stop();
      }
    });
  }

  test("H1 a second row of a log with the id of an event that is under way is reported, and doctor reports the missing index", async () => {
    await server.query(`create table app.twice (${COLUMNS}, event_id text, xid xid8 default pg_current_xact_id());
      create index on app.twice (xid, id);
      insert into app.twice (event_type, event_id, payload) values ('T', 'a', '1'), ('T', 'b', '2'), ('T', 'a', '3')`);
    const out = memoryPublisher();
    const relay = createRelay({ sources: [eventTableSource({ database, table: "app.twice" })], destinations: { out } });
    const repeated: string[] = [];
    relay.on("EventRepeated", ({ recordId }) => repeated.push(recordId));
    await relay.start();
    try {
      await until("it is reported", () => repeated.length > 0);
      await out.arrived(2);
    } finally {
      await relay.stop();
    }
    assert.deepEqual(repeated, ["a"]);
    assert.deepEqual(out.delivered.map(({ payload }) => String(payload)).toSorted(), ["1", "2"]);
    const table = { schema: "app", table: "twice" };
    const subject = { database, columns: {}, tables: [], destinations: [], retentionMs: null };
    const [finding] = await checkIds(subject, table);
    assert.match(finding?.what ?? "", /app\.twice has no unique index on event_id/);
    assert.deepEqual(await checkIds(subject, { schema: "app", table: "managed" }), []);
  });

  test("H1 a second row of a log under the id of a parked event is reported too", async () => {
    await server.query(`create table app.parked_twice (${COLUMNS}, event_id text, xid xid8 default pg_current_xact_id());
      create index on app.parked_twice (xid, id)`);
    const write = (id: string, key: string, payload: string) =>
      server.query(`insert into app.parked_twice (event_type, event_id, aggregate_id, payload)
        values ('T', '${id}', '${key}', '${payload}')`);
    const out = memoryPublisher();
    out.respond(({ event }) => (event.id === "a" ? rejected("refused") : delivered));
    const source = eventTableSource({ database, table: "app.parked_twice" });
    const relay = createRelay({ sources: [source], destinations: { out } });
    const repeated: string[] = [];
    relay.on("EventRepeated", ({ recordId }) => repeated.push(recordId));
    const dead = new Promise<void>((resolve) => relay.on("IntentDeadLettered", () => resolve()));
    await relay.start();
    try {
      await write("a", "k1", "1");
      await dead;
      await write("b", "k1", "2");
      await write("c", "k2", "3");
      await out.arrived(1);
      assert.deepEqual(repeated, [], "what is read once is no repetition");
      await write("a", "k2", "4");
      await write("d", "k2", "5");
      await out.arrived(2);
    } finally {
      await relay.stop();
    }
    assert.deepEqual(repeated, ["a"]);
    assert.deepEqual(
      out.delivered.map(({ event }) => event.id),
      ["c", "d"],
    );
  });
});
