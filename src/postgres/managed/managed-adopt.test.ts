import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { postgresBinaries } from "../../../test/servers/postgres-binaries.ts";
import { until } from "../../../test/servers/until.ts";
import { decodeMarks, encodeMarks } from "../../sources/postgres/tail/marks.ts";
import { migrateUp } from "../migrations/migrate.ts";
import { type Database, openDatabase } from "../pool.ts";
import { reanchor } from "./managed-adopt.ts";
import { managedTableSql } from "./managed-table.sql.ts";
import { readManaged } from "./managed-table.ts";
import { WakeUpListener } from "./wake-up-listener.ts";

const table = { schema: "shop", table: "outbox" };
const LANES = 4;
const run = promisify(execFile);

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let home: PostgresServer;
    let away: PostgresServer;
    before(async () => {
      [home, away] = await Promise.all([startPostgres({ version }), startPostgres({ version })]);
    });
    after(async () => {
      await Promise.all([home, away].map((server) => server[Symbol.asyncDispose]()));
    });

    const create = async (server: PostgresServer, name: string): Promise<Database> => {
      await server.createDatabase(name);
      const database = openDatabase({ url: server.databaseUrl(name) });
      await migrateUp(database);
      await server.query(managedTableSql({ table, payload: "text", partition: "1 day", wakeUp: false }), [], name);
      return database;
    };
    const burn = (server: PostgresServer, name: string, xids: number) =>
      server.query(
        `do $$ begin for i in 1..${xids} loop perform pg_current_xact_id(); commit; end loop; end $$`,
        [],
        name,
      );
    const publish = (type: string, from: number, to: number) =>
      `select shop.outbox_publish('${type}', 'k' || n, '{"n":' || n || '}', '{"a":"b"}', 'c') from generate_series(${from}, ${to}) n`;
    /** 50 events that were read, 50 that were not, one of them committed late. */
    const fill = async (server: PostgresServer, name: string) => {
      const late = new pg.Client(server.databaseUrl(name));
      await late.connect();
      await late.query(`begin; ${publish("unread", 51, 51)}`);
      await server.query(publish("read", 1, 50), [], name);
      await server.query(
        `insert into outbox_relay.pipelines (name, source_schema, source_table, lanes)
        values ('shop->out', 'shop', 'outbox', ${LANES})`,
        [],
        name,
      );
      await server.query(
        `insert into outbox_relay.lanes (pipeline, lane, position)
        select 'shop->out', lane, jsonb_build_object('from', pg_current_snapshot()::text, 'to', null, 'after', '0', 'ahead', '')
        from generate_series(0, ${LANES - 1}) lane`,
        [],
        name,
      );
      await late.query("commit");
      await late.end();
      await server.query(publish("unread", 52, 100), [], name);
    };
    const parked = async (server: PostgresServer, name: string) =>
      (
        await server.query<{ t: string; n: number }>(
          `select event_type as t, count(*)::int as n from outbox_relay.parked group by 1 order by 1`,
          [],
          name,
        )
      ).rows.map(({ t, n }) => `${n} ${t}`);
    /** What a lane reads next, as all of them stand at the same place. */
    const pending = async (server: PostgresServer, name: string) =>
      (
        await server.query<{ t: string }>(
          `select event_type as t from shop.outbox where not pg_visible_in_snapshot(xid,
             (select (position ->> 'from')::pg_snapshot from outbox_relay.lanes where lane = 0)) order by id`,
          [],
          name,
        )
      ).rows.map(({ t }) => t);

    /** Rows as a dump has them: with the numbers of the server that they come from. */
    const restore = async (name: string) => {
      const tables = ["shop.outbox", "outbox_relay.pipelines", "outbox_relay.lanes", "outbox_relay.identity"];
      await away.query("delete from outbox_relay.identity", [], name);
      for (const each of tables) {
        const { rows } = await home.query(`select coalesce(json_agg(t), '[]')::text as all from ${each} t`, [], name);
        const sql = `insert into ${each} overriding system value
          select * from json_populate_recordset(null::${each}, $1::json)`;
        await away.query(sql, [rows[0]?.all], name);
      }
      // All servers of the tests are copies of one, so this one only says that it is another.
      await away.query("update outbox_relay.identity set system_id = 'another'", [], name);
      await away.query("select setval(pg_get_serial_sequence('shop.outbox', 'id'), 1000)", [], name);
    };

    for (const [what, homeXids, awayXids] of [
      ["lower", 3_000, 0],
      ["higher", 0, 6_000],
    ] as const) {
      test(`D9 G3 on a server with ${what} numbers what was not read waits, what was read is over, and new rows are read`, async () => {
        const name = `numbers_${what}`;
        const [database, copy] = [await create(home, name), await create(away, name)];
        await burn(home, name, homeXids);
        await burn(away, name, awayXids);
        await fill(home, name);
        await restore(name);
        const writer = new pg.Client(away.databaseUrl(name));
        await writer.connect();
        await writer.query(publish("since", 1, 3));
        await writer.query(`begin; savepoint a; ${publish("since", 4, 5)}; commit`);
        await writer.query(`begin; ${publish("open", 1, 1)}`);
        const { parked: counts, rows } = await reanchor(copy, table, decodeMarks);
        assert.deepEqual([...counts], [["shop->out", 55]]);
        assert.equal(rows, 105);
        assert.deepEqual(await parked(away, name), ["5 since", "50 unread"]);
        await writer.query("commit");
        await writer.query(publish("later", 1, 2));
        assert.deepEqual(await pending(away, name), ["open", "later", "later"]);
        const { rows: one } = await away.query(
          `select pipeline, place, event_key, convert_from(payload, 'UTF8') as payload, headers, correlation_id
           from outbox_relay.parked where event_type = 'unread' order by place limit 1`,
          [],
          name,
        );
        const expected = { pipeline: "shop->out", place: "1", event_key: "k51", payload: '{"n":51}' };
        assert.deepEqual(one, [{ ...expected, headers: { a: "b" }, correlation_id: "c" }]);
        await writer.end();
        await Promise.all([database.close(), copy.close()]);
      });
    }

    test("D9 a writer that commits while the log is anchored is read afterwards", async () => {
      const database = await create(home, "meanwhile");
      await fill(home, "meanwhile");
      let hasWritten = false;
      const connect = async () => {
        const connection = await database.pool.connect();
        const query = async (config: pg.QueryConfig) => {
          if (config.text.startsWith("update") && !hasWritten) {
            hasWritten = true;
            await home.query(publish("meanwhile", 1, 1), [], "meanwhile");
          }
          return await connection.query(config);
        };
        return { query, release: (destroy: boolean) => connection.release(destroy) };
      };
      await reanchor({ ...database, pool: { connect } as unknown as pg.Pool }, table, decodeMarks);
      assert.ok(hasWritten);
      assert.deepEqual(await parked(home, "meanwhile"), ["50 unread"]);
      assert.deepEqual(await pending(home, "meanwhile"), ["meanwhile"]);
      await database.close();
    });

    test("D9 in a copy on the same server exactly the events wait that were neither read nor settled ahead, and doing it twice changes nothing", async () => {
      const database = await create(home, "original");
      await fill(home, "original");
      const { rows: settled } = await home.query<{ id: string }>(
        "select id from shop.outbox where event_type = 'unread' order by id limit 3",
        [],
        "original",
      );
      await home.query(
        `update outbox_relay.lanes set owner = gen_random_uuid(), epoch = 7,
           position = case lane when 1 then position || jsonb_build_object('ahead', $1::text) else position end`,
        [encodeMarks(settled.map(({ id }) => Number(id)))],
        "original",
      );
      await database.close();
      await home.query("create database twin template original");
      const twin = openDatabase({ url: home.databaseUrl("twin") });
      await reanchor(twin, table, decodeMarks);
      assert.deepEqual(await parked(home, "twin"), ["47 unread"]);
      const { rows } = await home.query(
        "select distinct owner, epoch > 7 as later from outbox_relay.lanes",
        [],
        "twin",
      );
      assert.deepEqual(rows, [{ owner: null, later: true }]);
      const again = await reanchor(twin, table, decodeMarks);
      assert.deepEqual([again.rows, await parked(home, "twin")], [0, ["47 unread"]]);
      assert.deepEqual(await pending(home, "twin"), []);
      await twin.close();
    });
  });
}

test("D9 G3 a dump keeps what makes a managed outbox: it is restored elsewhere, notifies, is re-anchored and continues", async () => {
  await using home = await startPostgres({ version: 15 });
  await using away = await startPostgres({ version: 15 });
  const database = openDatabase({ url: home.url });
  await migrateUp(database);
  await home.query(managedTableSql({ table, payload: "bytea", partition: "1 day", wakeUp: true }));
  await home.query("select shop.outbox_publish('before', 'k', 'x'::bytea)");
  await home.query(`insert into outbox_relay.pipelines (name, source_schema, source_table, lanes)
    values ('shop->out', 'shop', 'outbox', 1)`);
  await home.query(`insert into outbox_relay.lanes (pipeline, lane, position) values ('shop->out', 0,
    jsonb_build_object('from', pg_current_snapshot()::text, 'to', null, 'after', '0', 'ahead', ''))`);
  await home.query("select shop.outbox_publish('unread', 'k', 'y'::bytea)");
  await database.close();
  const bin = await postgresBinaries(15);
  const file = join(home.folder, "dump");
  await run(join(bin, "pg_dump"), ["-Fc", "-f", file, home.url]);
  await run(join(bin, "pg_restore"), ["--exit-on-error", "-d", away.url, file]);
  const copy = openDatabase({ url: away.url });
  const facts = await readManaged(copy, table);
  assert.deepEqual(
    [facts?.payload, facts?.step, facts?.hasWakeUp, facts?.partitions.length],
    ["bytea", "1 day", true, 5],
  );
  await away.query("update outbox_relay.identity set system_id = 'another'");
  await reanchor(copy, table, decodeMarks);
  const { rows } = await away.query(
    "select event_type, convert_from(payload, 'UTF8') as payload from outbox_relay.parked",
  );
  assert.deepEqual(rows, [{ event_type: "unread", payload: "y" }]);
  let rings = 0;
  const bell = new WakeUpListener(copy, table, () => {
    rings += 1;
  });
  assert.equal(await bell.arm(), true);
  const { rows: published } = await away.query(
    "select shop.outbox_publish('after', 'k', 'z'::bytea) is not null as isNew",
  );
  assert.equal(published[0]?.isnew, true);
  await until("it rang", () => rings === 1);
  await bell.close();
  await copy.close();
});
