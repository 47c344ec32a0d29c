import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { type ErrorCode, isRelayError } from "../../core/errors.ts";
import { quoteIdentifier } from "../../postgres/identifiers.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { discoverTables, readShape } from "./table-discovery.ts";

const HOSTILE = 'we"ird; drop table x; --';
const COLUMNS = "(id uuid primary key, type text, payload text, created_at timestamptz, published boolean)";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    before(async () => {
      server = await startPostgres({ version });
      await server.query(`
        create schema a; create table a.outbox ${COLUMNS};
        create schema b; create table b.outbox_events ${COLUMNS}; create table b.outbox ${COLUMNS};
        create schema empty; create table empty.other ${COLUMNS};
        create schema ${quoteIdentifier(HOSTILE)}; create table ${quoteIdentifier(HOSTILE)}."outbox" ${COLUMNS};
        create schema "Mixed"; create table "Mixed".outbox_events ${COLUMNS};
        create schema outbox_relay; create table outbox_relay.outbox ${COLUMNS};
        create schema viewed; create view viewed.outbox as select * from a.outbox;
        create schema parted; create table parted.outbox ${COLUMNS.replace("primary key", "")} partition by range (created_at);
        create table parted.outbox_events partition of parted.outbox default;
        create role relay login;
        grant usage on schema a, b, viewed, parted, "Mixed" to relay;
        grant select, update on a.outbox, b.outbox, "Mixed".outbox_events to relay; grant select on b.outbox_events to relay`);
      database = openDatabase({ url: server.databaseUrl("postgres", "relay") });
    });
    after(async () => {
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    const assertRejects = (promise: Promise<unknown>, code: ErrorCode, named: RegExp) =>
      assert.rejects(promise, (error) => isRelayError(error, code) && named.test(error.message));

    test("A5 A6 each configured schema gives its outbox tables, both names give two sources", async () => {
      assert.deepEqual(await discoverTables(database, { schemas: ["a", "b"] }), [
        { schema: "a", table: "outbox" },
        { schema: "b", table: "outbox" },
        { schema: "b", table: "outbox_events" },
      ]);
    });

    test("A7 a schema without a table is reported and delays no other", async () => {
      assert.deepEqual(await discoverTables(database, { schemas: ["empty", "absent", "a", "a"] }), [
        { schema: "empty", table: null },
        { schema: "absent", table: null },
        { schema: "a", table: "outbox" },
      ]);
    });

    test("A15 all schemas that hold an outbox table are found, whatever their names; our own is none", async () => {
      const schemas = (await discoverTables(database, { schemas: "*" })).map(
        ({ schema, table }) => `${schema} ${table}`,
      );
      const expected = [
        "a outbox",
        "b outbox",
        "b outbox_events",
        "Mixed outbox_events",
        "parted outbox",
        `${HOSTILE} outbox`,
      ];
      assert.deepEqual([...schemas].sort(), expected.sort());
    });

    test("A6 a table under any name can be named", async () => {
      const tables = ["empty.other", '"Mixed".outbox_events'];
      assert.deepEqual(await discoverTables(database, { schemas: ["a"], tables }), [
        { schema: "a", table: "outbox" },
        { schema: "empty", table: "other" },
        { schema: "Mixed", table: "outbox_events" },
      ]);
      assert.deepEqual(await discoverTables(database, { tables: ["empty.other"] }), [
        { schema: "empty", table: "other" },
      ]);
    });

    test("A15 a reference without a table takes whichever is there", async () => {
      assert.equal((await readShape(database, { schema: "Mixed", table: null })).name.table, "outbox_events");
      assert.equal((await readShape(database, { schema: "b", table: null })).name.table, "outbox");
    });

    test("A7 the error names what is missing: table, grant, column", async () => {
      const read = (schema: string, table: string | null = "outbox") => readShape(database, { schema, table });
      await assertRejects(read("absent"), "TABLE_MISSING", /absent\.outbox does not exist/);
      await assertRejects(read("absent", null), "TABLE_MISSING", /outbox or outbox_events/);
      await assertRejects(read("viewed"), "TABLE_MISSING", /^viewed\.outbox is a view: the relay reads only tables/);
      await assertRejects(read("b", "outbox_events"), "GRANT_MISSING", /relay lacks UPDATE on "b"\."outbox_events"/);
      await assertRejects(read(HOSTILE), "GRANT_MISSING", /USAGE on schema we"ird.*SELECT/);
      await server.query("create table a.narrow (id int); grant select, update on a.narrow to relay");
      await assertRejects(read("a", "narrow"), "COLUMN_MISSING", /a\.narrow/);
    });

    test("types are known through domains, enums, sequences and modifiers", async () => {
      await server.query(`
        create schema kinds; create type kinds.mood as enum ('Pending', 'Dispatched', 'Failed');
        create domain kinds.yes as boolean; create sequence kinds.s;
        create table kinds.outbox (id char(36) unique, event_type kinds.mood, payload varchar(10), published kinds.yes,
          n bigint default nextval('kinds.s'), created_at timestamptz);
        grant usage on schema kinds to relay; grant select, update on kinds.outbox to relay`);
      const shape = await readShape(database, { schema: "kinds", table: "outbox" });
      assert.deepEqual([shape.idType, shape.idText], ["bpchar", 't."id"::text']);
      assert.deepEqual(shape.order, { column: 't."n"', unique: true, isCreatedAt: false });
      assert.equal(shape.markDelivered, '"published" = true');
      assert.equal(shape.payload.kind, "text");
    });
  });
}
