import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { type Database, openDatabase } from "../../../postgres/pool.ts";
import { BEGINNING, endedSince } from "./difference.ts";
import { backlogTailSql } from "./table-log.sql.ts";
import { probeTailSql } from "./tail-kind.sql.ts";
import { gatherSql, surveyLargeSql, walkSql } from "./tail-reader.sql.ts";
import { TAIL_SETTINGS } from "./tail-reader.ts";
import type { TailScope } from "./tail-scope.ts";
import { readTailShape } from "./tail-shape.ts";
import { stretchesBefore } from "./tail-stretch.ts";
import { WHOLE } from "./walked.ts";

const ROWS = 30_000;
const COLUMNS = `id bigint generated always as identity, xid xid8 default pg_current_xact_id(),
  event_id uuid default gen_random_uuid(), event_key text, event_type text, payload text,
  created_at timestamptz not null default clock_timestamp()`;

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    let client: pg.Client;
    let older: string;
    let newer: string;

    before(async () => {
      server = await startPostgres({ version, flags: ["-c", "autovacuum=off"] });
      database = openDatabase({ url: server.url });
      client = new pg.Client({ connectionString: server.url });
      await client.connect();
      const open = new pg.Client({ connectionString: server.url });
      await open.connect();
      await client.query(`create table fresh (${COLUMNS}, primary key (id)); create index on fresh (xid, id);
        create table old (like fresh including all);
        create table parts (${COLUMNS}) partition by range (created_at); create index on parts (xid, id);
        create index on parts (id);
        create table parts_1 partition of parts for values from ('2020-01-01') to ('2021-01-01');
        create table parts_2 partition of parts for values from ('2021-01-01') to ('2099-01-01');
        create table parts_default partition of parts default`);
      const insert = (table: string, rows: number) =>
        client.query(`insert into ${table} (event_key, event_type, payload)
          select i % 100, 't' || i % 10, i from generate_series(1, ${rows}) i`);
      for (const table of ["fresh", "old", "parts"]) await insert(table, ROWS);
      // The statistics of one table are from before the difference, those of the others are not there at all.
      await client.query("analyze old");
      await open.query("begin");
      for (const table of ["fresh", "old", "parts"]) await open.query(`insert into ${table} (event_key) values ('k')`);
      // Only what ended after it makes an open transaction one that a snapshot names.
      await client.query("select pg_current_xact_id()");
      older = await snapshot();
      for (const table of ["fresh", "old", "parts"]) await insert(table, ROWS);
      await open.query("commit");
      await open.end();
      newer = await snapshot();
      assert.equal(endedSince({ from: older, to: newer }).length, 1);
    });
    after(async () => {
      await client.end();
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    async function snapshot(): Promise<string> {
      return (await client.query("select pg_current_snapshot()::text as it")).rows[0].it;
    }
    async function explain(text: string): Promise<string> {
      const settings = Object.entries(TAIL_SETTINGS).map(([name, value]) => `set local ${name} = '${value}'`);
      await client.query(`begin; ${settings.join(";")}`);
      const { rows } = await client.query(`explain (analyze, timing off, costs off, summary off) ${text}`);
      await client.query("rollback");
      return rows.map((row) => row["QUERY PLAN"]).join("\n");
    }
    async function scopeOf(table: string, types: TailScope["types"] = null): Promise<TailScope> {
      const shape = await readTailShape(database, { schema: "public", table }, { names: {} });
      return { shape, types, laneCount: 4, payloadBytesMax: 1_000 };
    }
    /** How many rows the plan's busiest node touched. */
    const rowsTouched = (plan: string) =>
      Math.max(
        ...[...plan.matchAll(/actual rows=([\d.]+) loops=(\d+)/g)].map((it) => Number(it[1]) * Number(it[2])),
        ...[...plan.matchAll(/Rows Removed by [\w ]+: (\d+)/g)].map((it) => Number(it[1])),
      );

    for (const table of ["fresh", "old", "parts"]) {
      const lanes = [0, 1, 2, 3];

      test(`${table}: a small difference is found by its transactions, without a look at the rest`, async () => {
        const from = newer;
        await client.query(`insert into ${table} (event_key, event_type) select 'k', 't' from generate_series(1, 5)`);
        const difference = { from, to: null };
        const plan = await explain(gatherSql(await scopeOf(table), { difference, after: 0, lanes }, 1_000, 2_000));
        assert.match(plan, /Index Scan using \w*xid_id_idx/);
        assert.doesNotMatch(plan, /Seq Scan|Bitmap|Parallel/);
        assert.ok(rowsTouched(plan) <= 5, plan);
        await client.query(`delete from ${table} where event_type = 't'`);
      });

      test(`${table}: a look at a large difference stops at its limit`, async () => {
        const stretch = { difference: { from: older, to: null }, after: 0, lanes };
        const plan = await explain(gatherSql(await scopeOf(table), stretch, 1_000, 2_000));
        assert.ok(rowsTouched(plan) <= 2_001, plan);
        assert.match(plan, /never executed/);
      });

      test(`${table}: the pages of a large difference are read along the positions, without a sort of it`, async () => {
        const difference = { from: older, to: newer };
        const scope = await scopeOf(table);
        const survey = await explain(surveyLargeSql(scope, difference));
        assert.match(survey, /xid_id_idx/);
        assert.doesNotMatch(survey, /Seq Scan/);
        const large = { before: ROWS, ended: endedSince(difference) };
        const stretch = { difference, after: ROWS + 5_000, lanes };
        const plan = await explain(walkSql(scope, stretch, large, 1_000, 50_000));
        const fromStart = await explain(walkSql(scope, { ...stretch, after: 0 }, large, 1_000, 50_000));
        assert.ok(rowsTouched(fromStart) <= 1_001, fromStart);
        assert.match(plan, table === "parts" ? /Index Scan using \w+_id_idx/ : /Index Scan using \w+_pkey/);
        assert.doesNotMatch(plan, /Seq Scan|Bitmap/);
        assert.ok(rowsTouched(plan) <= 1_001, plan);
      });

      test(`${table}: everything from the beginning is read along the positions, also for some lanes and types`, async () => {
        const scope = await scopeOf(table, [{ pattern: "t*", mine: true }]);
        const stretch = { difference: { from: BEGINNING, to: newer }, after: 20_000, lanes: [1, 3] };
        const plan = await explain(walkSql(scope, stretch, WHOLE, 500, 50_000));
        assert.doesNotMatch(plan, /Seq Scan|Bitmap/);
        assert.ok(rowsTouched(plan) <= 1_500, plan);
      });

      test(`${table}: the probe and the backlog touch no more than they need`, async () => {
        const scope = await scopeOf(table);
        const probe = await explain(probeTailSql(scope, [newer, older]));
        assert.doesNotMatch(probe, /Seq Scan on/);
        assert.ok(rowsTouched(probe) <= 1, probe);
        const heads = new Map(lanes.map((lane) => [lane, { segment: { from: older, to: newer }, mark: 0 }]));
        const backlog = await explain(backlogTailSql(scope, stretchesBefore(heads), 1_000));
        assert.ok(rowsTouched(backlog) <= 1_001, backlog);
      });
    }
  });
}
