import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { assertWithin } from "../../../test/servers/pace.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { until } from "../../../test/servers/until.ts";
import { type Database, openDatabase } from "../pool.ts";
import { gapsOf, keepPartitions } from "./managed-partitions.ts";
import { managedTableSql } from "./managed-table.sql.ts";
import { type ManagedFacts, readManaged } from "./managed-table.ts";

const DAY_MS = 86_400_000;

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

    const create = async (schema: string) => {
      const table = { schema, table: "outbox" };
      await server.query(managedTableSql({ table, payload: "text", partition: "1 day", wakeUp: false }));
      return table;
    };
    const partitionsOf = async (schema: string) =>
      (await readManaged(database, { schema, table: "outbox" }))?.partitions.filter(({ range }) => range !== null) ??
      [];
    const publish = (schema: string) => server.query(`select ${schema}.outbox_publish('a', null, '1')`);

    test("D9 partitions are created ahead of time, once, also by several relays at once", async () => {
      const table = await create("ahead");
      assert.deepEqual(await keepPartitions(database, table, 3 * DAY_MS), { created: 0, findings: [] });
      const made = await Promise.all([1, 2, 3].map(() => keepPartitions(database, table, 9 * DAY_MS)));
      assert.deepEqual(
        made.flatMap(({ findings }) => findings),
        [],
      );
      const partitions = await partitionsOf("ahead");
      assert.equal(partitions.length, 10);
      const { rows } = await server.query(
        `select count(*)::int as n from pg_index i join pg_inherits h on h.inhrelid = i.indrelid
         where h.inhparent = 'ahead.outbox'::regclass and i.indisunique`,
      );
      assert.equal(rows[0]?.n, 11);
    });

    test("D9 writers with open transactions neither hinder a partition's creation nor wait for it", async () => {
      const table = await create("busy");
      const writer = new pg.Client(server.url);
      await writer.connect();
      await writer.query("begin; select busy.outbox_publish('a', null, '1')");
      const { created, findings } = await keepPartitions(database, table, 6 * DAY_MS);
      assert.deepEqual([created, findings], [3, []]);
      await writer.query("select busy.outbox_publish('a', null, '2'); commit");
      await writer.end();
    });

    test("D9 G3 rows without a partition are in DEFAULT: reported, kept, and tomorrow's partition is there all the same", async () => {
      const table = await create("gap");
      for (const { name } of await partitionsOf("gap")) await server.query(`drop table gap.${name.table}`);
      await publish("gap");
      const { created, findings } = await keepPartitions(database, table, 2 * DAY_MS);
      assert.equal(created, 2);
      assert.match(findings[0]?.what ?? "", /gap\.outbox has no partition for .+Z to .+Z: its rows go to DEFAULT/);
      assert.match(findings[1]?.what ?? "", /^1 events of gap\.outbox are in DEFAULT/);
      await publish("gap");
      const { rows } = await server.query("select count(*)::int as n from gap.outbox_default");
      assert.equal(rows[0]?.n, 2);
      assert.equal((await keepPartitions(database, table, 2 * DAY_MS)).created, 0);
    });

    test("D9 partitions are cut in UTC whatever the session's time zone", async () => {
      const table = { schema: "zoned", table: "outbox" };
      const sql = managedTableSql({ table, payload: "text", partition: "1 day", wakeUp: false });
      await server.query(`set timezone = 'Asia/Kathmandu'; set datestyle = 'German'; ${sql}`);
      const partitions = await partitionsOf("zoned");
      assert.equal(partitions.length, 4);
      for (const { range } of partitions) assert.equal((range?.fromMs ?? 1) % DAY_MS, 0);
    });

    test("D9 a locked DEFAULT makes upkeep give up soon, say so, and come again", async () => {
      const table = await create("locked");
      const owner = new pg.Client(server.url);
      await owner.connect();
      await owner.query("begin; lock table locked.outbox_default in row exclusive mode");
      const { created, findings } = await keepPartitions(database, table, 5 * DAY_MS);
      assert.equal(created, 0);
      assert.match(findings[0]?.what ?? "", /has no partition for/);
      await owner.query("rollback");
      await owner.end();
      assert.equal((await keepPartitions(database, table, 5 * DAY_MS)).created, 2);
    });

    test("D9 G3 a table without DEFAULT is reported with the statement that fixes it", async () => {
      const table = await create("bare");
      await server.query("drop table bare.outbox_default");
      const [finding] = (await keepPartitions(database, table, DAY_MS)).findings;
      assert.equal(finding?.severity, "error");
      await server.query(finding?.fix ?? "");
      assert.deepEqual((await keepPartitions(database, table, DAY_MS)).findings, []);
    });

    test("D9 G3 what is no managed outbox is refused by name", async () => {
      await server.query("create schema plain; create table plain.outbox (id int)");
      const refused = keepPartitions(database, { schema: "plain", table: "outbox" }, DAY_MS);
      await assert.rejects(refused, /no managed outbox plain\.outbox/);
    });

    test("D9 writers continue while partitions are created: none waits noticeably", async () => {
      const table = await create("flow");
      const writer = new pg.Client(server.url);
      await writer.connect();
      let slowestMs = 0;
      let written = 0;
      let isOver = false;
      const writing = (async () => {
        while (!isOver) {
          const startMs = performance.now();
          await writer.query("select flow.outbox_publish('a', null, '1')");
          slowestMs = Math.max(slowestMs, performance.now() - startMs);
          written += 1;
        }
      })();
      await until("the writer writes", () => written > 50);
      assert.equal((await keepPartitions(database, table, 40 * DAY_MS)).created, 37);
      isOver = true;
      await writing;
      await writer.end();
      await assertWithin(slowestMs, 1_000, "the slowest insert");
    });
  });
}

test("D9 gaps are the times from now on that have no partition", () => {
  const facts = (...ranges: readonly (readonly [number, number])[]): ManagedFacts => ({
    table: { schema: "s", table: "t" },
    payload: "text",
    step: "1 day",
    hasWakeUp: false,
    hasWakeUpFunction: false,
    nowMs: 100,
    partitions: ranges.map(([fromMs, toMs]) => ({ name: { schema: "s", table: "p" }, range: { fromMs, toMs } })),
  });
  assert.deepEqual(gapsOf(facts([90, 110], [110, 130]), 20), []);
  assert.deepEqual(gapsOf(facts([90, 110]), 20), [{ fromMs: 110, toMs: 120 }]);
  assert.deepEqual(gapsOf(facts([105, 110], [115, 130]), 20), [
    { fromMs: 100, toMs: 105 },
    { fromMs: 110, toMs: 115 },
  ]);
  assert.deepEqual(gapsOf(facts([10, 20]), 20), [{ fromMs: 100, toMs: 120 }]);
  assert.deepEqual(gapsOf(facts([Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]), 20), []);
});
