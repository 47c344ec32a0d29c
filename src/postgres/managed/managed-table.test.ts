import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { makeHostile } from "../../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { until } from "../../../test/servers/until.ts";
import { isRelayError } from "../../core/errors.ts";
import { laneSql } from "../../sources/postgres/event-columns.ts";
import type { TableShape } from "../../sources/postgres/table-shape.ts";
import { quoteIdentifier, quoteTable } from "../identifiers.ts";
import { type Database, openDatabase } from "../pool.ts";
import { isManagedOutbox, type ManagedTable, managedLaneSql, PARTITION_STEPS, WAKE_UP_LOCK } from "./managed-names.ts";
import { managedTableSql } from "./managed-table.sql.ts";
import { readManaged } from "./managed-table.ts";

const outbox = (schema: string, rest: Partial<ManagedTable> = {}): ManagedTable => ({
  table: { schema, table: "outbox" },
  payload: "text",
  partition: "1 day",
  wakeUp: false,
  ...rest,
});

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

    const objects = async (schema: string) => {
      const sql = `select relname || ' ' || relkind::text as what from pg_class where relnamespace = $1::regnamespace
        union all select proname || ' f' from pg_proc where pronamespace = $1::regnamespace
        union all select tgname || ' t' from pg_trigger where tgrelid = to_regclass($1 || '.outbox') order by 1`;
      return (await server.query<{ what: string }>(sql, [schema])).rows.map(({ what }) => what);
    };

    for (const payload of ["text", "bytea"] as const) {
      test(`D9 a managed outbox is created once, with ${payload} and a place for every time`, async () => {
        const options = outbox(`made_${payload}`, { payload, wakeUp: payload === "text" });
        await server.query(managedTableSql(options));
        const made = await objects(options.table.schema);
        await server.query(managedTableSql(options));
        assert.deepEqual(await objects(options.table.schema), made);
        const facts = await readManaged(database, options.table);
        assert.equal(facts?.payload, payload);
        assert.equal(facts?.step, "1 day");
        assert.equal(facts?.hasWakeUp, payload === "text");
        assert.equal(facts?.partitions.length, 5);
        assert.equal(facts?.partitions.at(-1)?.range, null);
        for (const { name } of facts?.partitions ?? []) {
          const sql = `select pg_get_indexdef(indexrelid) as def from pg_index where indrelid = $1::regclass order by 1`;
          const { rows } = await server.query<{ def: string }>(sql, [quoteTable(name)]);
          assert.match(
            rows.map(({ def }) => def).join("\n"),
            /^CREATE INDEX .+ USING brin .+\nCREATE INDEX .+\(id\)\nCREATE INDEX .+\(xid, id\)\nCREATE UNIQUE INDEX .+\(event_id\)$/,
          );
        }
      });
    }

    test("D9 the wake-up trigger comes and goes as it is asked for", async () => {
      for (const wakeUp of [false, true, false]) {
        await server.query(managedTableSql(outbox("waking", { wakeUp })));
        assert.equal((await readManaged(database, { schema: "waking", table: "outbox" }))?.hasWakeUp, wakeUp);
        assert.equal((await objects("waking")).includes("outbox_ring f"), wakeUp);
      }
    });

    test("D9 any name does, and each step cuts time into parts of its own", async () => {
      for (const partition of PARTITION_STEPS) {
        const table = { schema: `We"ird '%s' $managed$ ${partition}`, table: `Out"b%o'x $m9managed$ ${partition}` };
        await server.query(managedTableSql({ table, payload: "text", partition, wakeUp: true }));
        const publish = quoteTable({ schema: table.schema, table: `${table.table}_publish` });
        const { rows } = await server.query(`select ${publish}('a', 'k', '{}') as id`);
        const facts = await readManaged(database, table);
        assert.equal(facts?.step, partition);
        const ranges = facts?.partitions.flatMap(({ range }) => range ?? []) ?? [];
        assert.ok(ranges.length >= 4);
        for (const [at, range] of ranges.entries()) if (at > 0) assert.equal(range.fromMs, ranges[at - 1]?.toMs);
        const stands = await server.query(
          `select tableoid::regclass::text as at, event_id, extract(epoch from created_at) * 1000 between $1 and $2 as fits from ${quoteTable(table)}`,
          [ranges[0]?.fromMs, ranges[0]?.toMs],
        );
        assert.equal(stands.rows[0]?.event_id, rows[0]?.id);
        assert.ok(stands.rows[0]?.fits);
        assert.match(stands.rows[0]?.at, /_p\d+"$/);
      }
    });

    test("D9 several that create it at once create it once", async () => {
      await Promise.all(Array.from({ length: 6 }, () => server.query(managedTableSql(outbox("at_once")))));
      assert.equal((await readManaged(database, { schema: "at_once", table: "outbox" }))?.partitions.length, 5);
    });

    test("D9 G3 a table of another kind is left alone, and the message names it", async () => {
      await server.query("create schema taken; create table taken.outbox (id bigint, payload text)");
      const named = /taken\.outbox already exists and is not a managed outbox/;
      await assert.rejects(server.query(managedTableSql(outbox("taken"))), named);
      assert.deepEqual(await objects("taken"), ["outbox r"]);
      assert.equal(await readManaged(database, { schema: "taken", table: "outbox" }), null);
      await server.query(managedTableSql(outbox("typed")));
      const typed = managedTableSql(outbox("typed", { payload: "bytea" }));
      await assert.rejects(server.query(typed), /typed\.outbox already exists and its payload is not bytea/);
      assert.equal(await readManaged(database, { schema: "typed", table: "none" }), null);
    });

    test("D9 a comment that was lost in a dump is no loss", async () => {
      await server.query(managedTableSql(outbox("uncommented")));
      await server.query("comment on table uncommented.outbox is null");
      assert.equal((await readManaged(database, outbox("uncommented").table))?.step, "1 day");
      await server.query(managedTableSql(outbox("uncommented", { partition: "1 hour" })));
      assert.equal((await readManaged(database, outbox("uncommented").table))?.step, "1 hour");
    });

    test("D9 the function publishes in the caller's transaction, an id once, and needs only its rights", async () => {
      await server.query(managedTableSql(outbox("shop", { payload: "bytea" })));
      await server.query(`create role clerk login; grant usage on schema shop to clerk;
        grant insert, select (event_id) on shop.outbox to clerk`);
      const clerk = openDatabase({ url: server.databaseUrl("postgres", "clerk") });
      const id = "00000000-0000-4000-8000-000000000001";
      const publish = `select shop.outbox_publish('order.placed', 'o-1', '\\x00ff', '{"a": "b"}', 'c-1', $1)`;
      assert.equal((await clerk.pool.query({ text: publish, values: [id], rowMode: "array" })).rows[0]?.[0], id);
      assert.equal((await clerk.pool.query({ text: publish, values: [id], rowMode: "array" })).rows[0]?.[0], null);
      const client = await clerk.pool.connect();
      await client.query("begin");
      await client.query("select shop.outbox_publish('gone', null, 'x'::bytea)");
      await client.query("rollback");
      client.release();
      await clerk.close();
      const { rows } = await server.query(
        "select event_type, event_key, payload, headers, correlation_id, xid is not null as x from shop.outbox",
      );
      const payload = Buffer.from([0, 255]);
      assert.deepEqual(rows, [
        { event_type: "order.placed", event_key: "o-1", payload, headers: { a: "b" }, correlation_id: "c-1", x: true },
      ]);
    });

    test("H1 D9 the statements, the publish function and the wake-up work in sessions with hostile defaults", async () => {
      await server.query("create role stranger login superuser; create role scribe login");
      for (const role of ["stranger", "scribe"]) await makeHostile(server, role);
      const connect = async (role: string) => {
        const client = new pg.Client(server.databaseUrl("postgres", role));
        await client.connect();
        return client;
      };
      const [owner, writer, idle] = [await connect("stranger"), await connect("scribe"), await connect("postgres")];
      const table = { schema: "for\\eign%s '", table: "out\\box%s '" };
      const name = quoteTable(table);
      for (let times = 0; times < 2; times += 1) {
        const create = managedTableSql({ ...outbox("foreign", { wakeUp: true }), table });
        const results = await owner.query(`begin read write; ${create}; show search_path; commit`);
        const [path] = (results as unknown as pg.QueryResult[]).flatMap(({ rows }) => rows);
        assert.deepEqual(path, { search_path: "shadow, public, pg_catalog" }, "nothing is left behind");
      }
      const facts = await readManaged(database, table);
      assert.deepEqual([facts?.partitions.length, facts?.hasWakeUp], [5, true]);
      await server.query(`grant usage on schema ${quoteIdentifier(table.schema)} to scribe;
        grant insert, select (event_id) on ${name} to scribe`);
      const { rows } = await idle.query("select $1::regclass::oid::int as oid", [name]);
      const heard: string[] = [];
      idle.on("notification", ({ channel }) => heard.push(channel));
      await idle.query(`listen outbox_relay_${rows[0].oid}; select pg_advisory_lock(${WAKE_UP_LOCK}, ${rows[0].oid})`);
      const publish = quoteTable({ schema: table.schema, table: "out\\box%s '_publish" });
      const id = "00000000-0000-4000-8000-00000000000a";
      await writer.query(`begin read write; select ${publish}('order.placed', 'o-1', 'a\tb', '{"a": "b"}', 'c-1');
        select ${publish}('order.paid', 'o-1', '{}', event_id => '${id}');
        select ${publish}('order.paid', 'o-1', '{}', event_id => '${id}'); commit`);
      await until("the relay is woken", () => heard.length > 0);
      const written = await server.query(
        `select event_type, payload, headers, abs(extract(epoch from now() - created_at)) < 600 as recent,
           tableoid::regclass::text like '%default%' as strays from ${name} order by id`,
      );
      const common = { recent: true, strays: false };
      assert.deepEqual(written.rows, [
        { event_type: "order.placed", payload: "a\tb", headers: { a: "b" }, ...common },
        { event_type: "order.paid", payload: "{}", headers: null, ...common },
      ]);
      await Promise.all([owner.end(), writer.end(), idle.end()]);
    });
  });
}

test("D9 the lanes are those of the source", () => {
  const shape = { key: 't."event_key"::text', id: 't."event_id"' } as TableShape;
  for (const lanes of [1, 8]) assert.equal(managedLaneSql(lanes), laneSql(shape, lanes));
});

test("D9 a managed outbox is known by its columns", () => {
  const columns =
    "id xid event_id event_type event_key payload headers correlation_id traceparent tracestate created_at";
  assert.ok(isManagedOutbox([...columns.split(" "), "tenant"]));
  assert.ok(!isManagedOutbox(columns.split(" ").filter((name) => name !== "xid")));
});

test("D9 G3 a name without room for those of the partitions, and an unknown step, are refused", () => {
  const invalid = (error: unknown) => isRelayError(error, "CONFIG_INVALID");
  const table = { schema: "s", table: "x".repeat(52) };
  assert.throws(() => managedTableSql({ ...outbox("s"), table }), invalid);
  assert.throws(() => managedTableSql(outbox("s", { partition: "2 days" as "1 day" })), invalid);
  assert.ok(
    managedTableSql({ ...outbox("s"), table: { schema: "s", table: "x".repeat(51) } }).includes(quoteIdentifier("s")),
  );
});
