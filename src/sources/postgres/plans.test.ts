import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { BACKLOG_EXACT_MAX } from "../../ports/queue-store.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { sampleSql } from "../../postgres/table-backlog.ts";
import { countedTable } from "./counted-table.ts";
import type { PendingFilter, PendingScope } from "./pending-condition.ts";
import { postgresSource } from "./postgres-source.ts";
import { probeSql, runSql } from "./postgres-store.sql.ts";
import { RUN_SETTINGS } from "./postgres-store.ts";
import { dropVoidHoldsSql, REVIEW_SETTINGS } from "./review-holds.ts";
import { markSql } from "./settle.sql.ts";
import { SETTLE_SETTINGS } from "./settle.ts";
import { readShape } from "./table-discovery.ts";

const ROWS = 60_000;
const HOLDS = 1_000;
const ALL = [0, 1, 2, 3];
/** Of three pipelines that share the table. */
const rules = (mine: number) => ["t1", "t2*", "*"].map((pattern, at) => ({ pattern, mine: at === mine }));

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    let client: pg.Client;
    let scope: PendingScope;

    before(async () => {
      server = await startPostgres({ version, flags: ["-c", "autovacuum=off"] });
      database = openDatabase({ url: server.url });
      await migrateUp(database);
      client = new pg.Client({ connectionString: server.url });
      await client.connect();
      await client.query(`create schema app; create table app.outbox (id uuid primary key default gen_random_uuid(),
          aggregate_id uuid, event_type varchar(100) not null, payload jsonb not null, correlation_id uuid,
          created_at timestamptz not null default now(), published_at timestamptz, published boolean not null default false);
        create index on app.outbox (created_at) where published = false;
        insert into app.outbox (aggregate_id, event_type, payload, created_at)
          select gen_random_uuid(), 't' || i % 10, '{}', now() + i * interval '1 ms' from generate_series(1, ${ROWS}) i;
        insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, reason)
          select 'p', 0, id, aggregate_id, 'retrying', true, 1, 'no' from app.outbox limit ${HOLDS};`);
      await client.query("analyze");
      const shape = await readShape(database, { schema: "app", table: "outbox" });
      scope = { shape, tables: database.tables, pipeline: "p", types: null, laneCount: 4 };
    });
    after(async () => {
      await client.end();
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    async function plan(text: string, settings: Readonly<Record<string, string>>): Promise<string> {
      const local = Object.entries({ ...settings, plan_cache_mode: "force_generic_plan" });
      await client.query(`begin; ${local.map(([name, value]) => `set local ${name} = '${value}'`).join(";")}`);
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain ${text}`);
      await client.query("rollback");
      return rows.map((row) => row["QUERY PLAN"].replace(/'\{[^}]*\}'/g, "'{..}'")).join("\n");
    }
    const runPlan = (filter: Partial<PendingFilter>, types = scope.types) => {
      const full: PendingFilter = { rows: "main", lanes: ALL, holds: { ids: true, keys: true }, ...filter };
      const text = runSql({ ...scope, types }, full, 1_000_000);
      return plan(`declare run no scroll cursor for ${text}`, RUN_SETTINGS);
    };
    const assertInOrder = (it: string) => {
      assert.match(it, /Index Scan using outbox_created_at_idx on outbox t/);
      assert.doesNotMatch(it, /Sort|Seq Scan on outbox|Hash Anti|Merge/);
    };

    test("a run reads in the order of the index, without a sort", async () => {
      assertInOrder(await runPlan({ holds: { ids: false, keys: false } }));
      assertInOrder(await runPlan({ holds: { ids: false, keys: false }, lanes: [2] }));
    });

    test("F4 with 1,000 holds a run keeps the order of the index and leaves them out by hashed subplans", async () => {
      const it = await runPlan({});
      assertInOrder(it);
      assert.doesNotMatch(it, /holds h.*loops=(?!1\))/, "the dead letters are read once");
    });

    test("a run with every kind of filter keeps the order of the index", async () => {
      const types = [
        { pattern: "t1", mine: false },
        { pattern: "t*", mine: true },
      ];
      const exceptKeys = Array.from({ length: 100 }, (_, index) => `key ${index}`);
      const it = await runPlan({ lanes: [1, 3], exceptKeys }, types);
      assertInOrder(it);
      assert.equal(it.match(/hashed SubPlan/g)?.length, 3, it);
    });

    test("types that are left out with their keys are left out by a hashed subplan too", async () => {
      const it = await runPlan({ exceptTypes: ["t1", "t2"] });
      assert.match(it, /Index Scan using outbox_created_at_idx on outbox t/);
      assert.equal(it.match(/hashed SubPlan/g)?.length, 3, it);
    });

    test("a run over a table that was never analysed keeps the order of the index", async () => {
      await client.query(`create schema fresh; create table fresh.outbox (like app.outbox including all);
        insert into fresh.outbox select * from app.outbox`);
      const shape = await readShape(database, { schema: "fresh", table: "outbox" });
      const filter = { rows: "main", lanes: ALL, holds: { ids: true, keys: true } } as const;
      const it = await plan(`declare run cursor for ${runSql({ ...scope, shape }, filter, 1_000)}`, RUN_SETTINGS);
      assert.doesNotMatch(it, /Sort|Seq Scan on outbox/);
    });

    test("the probe asks the partial index, also when the statistics describe a table full of pending rows", async () => {
      const filter = { rows: "main", lanes: ALL, holds: { ids: true, keys: true } } as const;
      assertInOrder(await plan(probeSql(scope, filter), {}));
    });

    test("A18 the backlog is counted in the order of the index and stops at its limit, also with 1,000 dead letters", async () => {
      await client.query("begin; update outbox_relay.holds set state = 'dead'");
      const takers = Array.from({ length: 3 }, (_, at) => ({ pipeline: at === 0 ? "p" : `p${at}`, takes: rules(at) }));
      const text = sampleSql(countedTable(scope.shape, database.tables, "main"), database.tables, takers, "first");
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (analyze, timing off, costs off) ${text}`);
      await client.query("rollback");
      const it = rows.map((row) => row["QUERY PLAN"]).join("\n");
      assertInOrder(it);
      assert.doesNotMatch(it, /holds h.*loops=(?!1\))/, "the dead letters are read once");
      const counted = new RegExp(
        `Index Scan using outbox_created_at_idx on outbox t_1 \\(actual rows=${BACKLOG_EXACT_MAX + 1}`,
      );
      assert.match(it, counted);
    });

    test("A18 beyond its limit the backlog is estimated by the statistics", async () => {
      const spec = { name: "p", types: null, lanes: 4, attemptsMax: 3, payloadBytesMax: 1_000, headersMax: 10 };
      const store = postgresSource({ database, table: "app.outbox" }).pipeline(spec);
      const { pending, isEstimate, oldestAgeMs, dead } = await store.backlog();
      assert.deepEqual([isEstimate, dead], [true, 0]);
      assert.ok(pending > ROWS * 0.9 && pending < ROWS * 1.1, `${pending} of ${ROWS}`);
      assert.ok(oldestAgeMs !== null && oldestAgeMs >= 0);
    });

    test("a settle finds its rows by primary key", async () => {
      const { rows } = await client.query<{ id: string }>("select id from app.outbox limit 500");
      const grant = { lane: 0, owner: "00000000-0000-4000-8000-000000000001", epoch: 1n };
      const nothing = { failed: [], handedBack: [], releasedHolds: [], suspects: [] };
      const delivered = rows.map(({ id }) => id);
      const settlement = { grant, previousBatch: 0n, batch: 1n, ledger: "none" as const, delivered, ...nothing };
      const it = await plan(markSql(database.tables, "p", scope.shape, settlement), SETTLE_SETTINGS);
      assert.match(it, /(Index Scan|Bitmap Index Scan).*outbox_pkey/);
      assert.doesNotMatch(it, /Seq Scan on outbox/);
    });

    test("a review looks each hold's row up by primary key", async () => {
      const text = dropVoidHoldsSql(database.tables, scope.shape, "").replace("$1", "'p'").replace("$2", "0");
      const it = await plan(text, REVIEW_SETTINGS);
      assert.match(it, /Index.*Scan using outbox_pkey/);
      assert.doesNotMatch(it, /Seq Scan on outbox|Hash/);
    });
  });
}
