import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { makeHostile } from "../../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { isRelayError } from "../../core/errors.ts";
import { grantsFor } from "../grants.ts";
import { quoteIdentifier } from "../identifiers.ts";
import { type Database, openDatabase } from "../pool.ts";
import { migrateDown, migrateUp, migrationStatus, requireSchema, sqlOf } from "./migrate.ts";
import { SCHEMA_VERSION } from "./migrations.ts";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startPostgres({ version });
    });
    after(async () => await server[Symbol.asyncDispose]());

    const withDatabase = async (relaySchema: string, work: (database: Database) => Promise<void>) => {
      const database = openDatabase({ url: server.url, relaySchema });
      try {
        await work(database);
      } finally {
        await database.close();
      }
    };
    const objectsOf = async (schema: string) => {
      const sql = `select c.relname || ' ' || c.relkind::text as what from pg_class c
        join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 order by 1`;
      return (await server.query<{ what: string }>(sql, [schema])).rows.map(({ what }) => what);
    };
    const schemaExists = async (schema: string) =>
      (await server.query("select 1 from pg_namespace where nspname = $1", [schema])).rowCount === 1;

    for (const relaySchema of ["outbox_relay", 'We"ird; drop schema $relay$ x; --']) {
      test(`A17 up, down and up again leave nothing behind in ${relaySchema}`, async () => {
        await withDatabase(relaySchema, async (database) => {
          assert.equal((await migrateUp(database)).length, SCHEMA_VERSION);
          const objects = await objectsOf(relaySchema);
          assert.ok(objects.includes("failed_events r") && objects.includes("relay_state v"));
          assert.deepEqual(await migrateUp(database), []);
          assert.equal((await migrateDown(database, 0)).length, SCHEMA_VERSION);
          assert.equal(await schemaExists(relaySchema), false);
          await migrateUp(database);
          assert.deepEqual(await objectsOf(relaySchema), objects);
          await requireSchema(database);
          await migrateDown(database, 0);
        });
      });
    }

    test("H1 G3 the printed statements mean the same in a session with hostile defaults", async () => {
      await server.query("create role stranger login superuser");
      await makeHostile(server, "stranger");
      const stranger = new pg.Client(server.databaseUrl("postgres", "stranger"));
      await stranger.connect();
      try {
        await stranger.query(sqlOf("up", "strange"));
        const { rows } = await server.query(`select pg_get_expr(adbin, adrelid) as kept from pg_attrdef
          where adrelid::regclass::text like 'strange.%' and pg_get_expr(adbin, adrelid) like '%shadow%'`);
        assert.deepEqual(rows, []);
        await withDatabase("strange", requireSchema);
        await server.query(
          "insert into strange.pipelines (name, source_schema, source_table, lanes) values ('a', 'b', 'c', 1)",
        );
        await stranger.query(sqlOf("down", "strange"));
        assert.equal(await schemaExists("strange"), false);
      } finally {
        await stranger.end();
      }
    });

    test("A17 processes that start at once migrate once", async () => {
      const databases = Array.from({ length: 6 }, (_, index) =>
        openDatabase({ url: server.url, relaySchema: "at_once", applicationName: `starter ${index}` }),
      );
      const steps = await Promise.all(databases.map((database) => migrateUp(database)));
      assert.equal(steps.flat().length, SCHEMA_VERSION);
      await Promise.all(databases.map((database) => database.close()));
    });

    test("A17 the printed SQL does the same as running it", async () => {
      await withDatabase("printed", async (database) => {
        await server.query(sqlOf("up", "printed"));
        const printed = await objectsOf("printed");
        await requireSchema(database);
        await server.query(sqlOf("down", "printed"));
        assert.equal(await schemaExists("printed"), false);
        await migrateUp(database);
        assert.deepEqual(await objectsOf("printed"), printed);
      });
    });

    test("G3 a missing, older or newer schema is refused, each with its own error", async () => {
      await withDatabase("versions", async (database) => {
        await assert.rejects(requireSchema(database), (error) => isRelayError(error, "SCHEMA_MISSING"));
        await migrateUp(database);
        await server.query("update versions.schema_versions set version = version + 100, serves_from = version + 100");
        await assert.rejects(requireSchema(database), (error) => isRelayError(error, "SCHEMA_NEWER"));
        await assert.rejects(migrateUp(database), (error) => isRelayError(error, "SCHEMA_NEWER"));
        await assert.rejects(migrateDown(database, 0), (error) => isRelayError(error, "SCHEMA_NEWER"));
        await assert.rejects(migrateUp(database, 99), (error) => isRelayError(error, "CONFIG_INVALID"));
      });
    });

    test("A21 a program works on a later schema that serves it, so that instances can be replaced one by one", async () => {
      await withDatabase("later", async (database) => {
        await migrateUp(database);
        const later = SCHEMA_VERSION + 1;
        await server.query(
          `insert into later.schema_versions (version, name, serves_from) values (${later}, 'later', ${SCHEMA_VERSION})`,
        );
        await requireSchema(database);
        assert.deepEqual(await migrateUp(database), []);
        await assert.rejects(migrateDown(database, 0), (error) => isRelayError(error, "SCHEMA_NEWER"));
        await server.query("update later.schema_versions set serves_from = version");
        await assert.rejects(requireSchema(database), (error) => isRelayError(error, "SCHEMA_NEWER"));
      });
    });

    test("the status lists what is applied and what is pending", async () => {
      await withDatabase("status", async (database) => {
        const before = await migrationStatus(database);
        assert.deepEqual([before.version, before.applied, before.pending.length], [0, [], SCHEMA_VERSION]);
        await migrateUp(database);
        const after = await migrationStatus(database);
        assert.deepEqual([after.version, after.applied.length, after.pending], [SCHEMA_VERSION, SCHEMA_VERSION, []]);
      });
    });

    test("a schema that was there before, or that holds something else, is not ours to make or drop", async () => {
      await server.query("create schema shared; create table shared.foreign_table (); create role limited login");
      await server.query("grant create, usage on schema shared to limited");
      const database = openDatabase({ url: server.databaseUrl("postgres", "limited"), relaySchema: "shared" });
      await migrateUp(database);
      await migrateDown(database, 0);
      await database.close();
      assert.deepEqual(await objectsOf("shared"), ["foreign_table r"]);
    });

    test("a failed migration changes nothing", async () => {
      await server.query("create schema half; create table half.holds ()");
      await withDatabase("half", async (database) => {
        await assert.rejects(migrateUp(database), (error) => isRelayError(error, "DATABASE_REFUSED"));
        assert.deepEqual(await objectsOf("half"), ["holds r"]);
      });
    });

    test("the identity is one row with the server's identifier", async () => {
      await withDatabase("identified", async (database) => {
        await migrateUp(database);
        const { rows } = await server.query<{ uuid: string; system_id: string }>("select * from identified.identity");
        const known = await server.query<{ id: string }>(
          "select system_identifier::text as id from pg_control_system()",
        );
        assert.deepEqual([rows.length, rows[0]?.system_id], [1, known.rows[0]?.id]);
        await assert.rejects(server.query("insert into identified.identity default values"));
      });
    });

    test("notes of what people did cannot be changed, deleted or truncated, not even by their owner", async () => {
      await withDatabase("audited", async (database) => {
        await migrateUp(database);
        await server.query("insert into audited.audit (actor, via, action) values ('mia', 'cli', 'pause')");
        for (const sql of [
          "update audited.audit set actor = 'eve'",
          "delete from audited.audit",
          "truncate audited.audit",
        ]) {
          await assert.rejects(server.query(sql), /the audit is append-only/, sql);
        }
      });
    });

    test("A17 the grants give SELECT and UPDATE on the outbox tables, DELETE only with retention, and nothing else", async () => {
      await server.query(
        `create schema granted; create table granted.outbox (id int); create table granted.secret (id int)`,
      );
      await withDatabase("granting", async (database) => {
        await migrateUp(database);
        const tables = [{ schema: "granted", table: "outbox" }];
        for (const [role, retention] of [
          ["plain", false],
          ["pruning", true],
        ] as const) {
          await server.query(`create role ${quoteIdentifier(role)}`);
          await server.query(grantsFor({ role, relaySchema: "granting", tables, retention }));
          const rights = await rightsOf(server, role, "granted.outbox");
          assert.deepEqual(rights, retention ? ["select", "update", "delete"] : ["select", "update"]);
          assert.deepEqual(await rightsOf(server, role, "granted.secret"), []);
          assert.deepEqual(await rightsOf(server, role, "granting.holds"), ["select", "insert", "update", "delete"]);
          assert.deepEqual(await rightsOf(server, role, "granting.identity"), ["select"]);
        }
      });
    });
  });
}

async function rightsOf(server: PostgresServer, role: string, table: string): Promise<string[]> {
  const { rows } = await server.query<{ right: string }>(
    `select r as right from unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'trigger']) with ordinality u(r, n)
     where has_table_privilege($1, $2, r) order by n`,
    [role, table],
  );
  return rows.map(({ right }) => right);
}
