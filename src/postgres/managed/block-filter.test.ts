import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { makeHostile } from "../../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { createManaged } from "../../operations/logs/managed-upkeep.ts";
import { type Database, openDatabase } from "../pool.ts";
import { hasBlockFilter } from "./block-filter.ts";
import type { ManagedTable } from "./managed-names.ts";
import { managedTableSql } from "./managed-table.sql.ts";

const table = { schema: "shop", table: "outbox" };
const OPTIONS: ManagedTable = { table, payload: "text", partition: "1 day", wakeUp: false };

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    before(async () => {
      server = await startPostgres({ version });
      database = openDatabase({ url: server.url });
    });
    after(async () => {
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    test("F3 D9 a managed outbox of an earlier version gets its filters, with rows in it, writers at work and two who ask at once", async () => {
      await server.query(managedTableSql(OPTIONS));
      assert.ok(await hasBlockFilter(database, table), "a new one has them");
      await server.query("drop index shop.outbox_sieve");
      const insert =
        "insert into shop.outbox (event_type, event_key, payload) select 'a', 'k' || n, '{}' from generate_series(1, 1000) n";
      await server.query(insert);
      await server.query(managedTableSql(OPTIONS));
      assert.ok(!(await hasBlockFilter(database, table)), "SQL alone prepares new partitions, without waiting");
      const other = openDatabase({ url: server.url, applicationName: "another" });
      const writing = server.query(insert);
      assert.deepEqual(await Promise.all([createManaged(database, OPTIONS), createManaged(other, OPTIONS)]), [
        false,
        false,
      ]);
      await writing;
      await other.close();
      assert.ok(await hasBlockFilter(database, table));
      assert.equal(await createManaged(database, OPTIONS), false, "again changes nothing");
      const { rows } = await server.query<{ count: string }>(
        `select count(*) from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
         join pg_class t on t.oid = i.indrelid where a.amname = 'brin' and t.relname like 'outbox%' and i.indisvalid`,
      );
      assert.equal(rows[0]?.count, "6", "the table's own and one for each partition");
    });

    test("H1 F3 an owner with hostile defaults builds them too", async () => {
      const foreign = { ...OPTIONS, table: { schema: "foreign", table: "outbox" } };
      await server.query(`${managedTableSql(foreign)} drop index "foreign".outbox_sieve;
        insert into "foreign".outbox (event_type, payload) values ('a', '{}')`);
      await server.query("create role stranger login superuser");
      await makeHostile(server, "stranger");
      const hostile = openDatabase({ url: server.databaseUrl("postgres", "stranger") });
      try {
        assert.equal(await createManaged(hostile, foreign), false);
        assert.ok(await hasBlockFilter(hostile, foreign.table));
      } finally {
        await hostile.close();
      }
    });
  });
}
