import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { PostgresServer } from "../../../../test/servers/postgres.ts";
import { type ErrorCode, isRelayError } from "../../../core/errors.ts";
import { quoteIdentifier } from "../../../postgres/identifiers.ts";
import { SPEC } from "../../../testing/contracts/store-stage.ts";
import { type Fixture, openFixture, ROLE, startServer } from "./fixture.test.ts";
import { openOutboxSource } from "./openoutbox-source.ts";

const role = quoteIdentifier(ROLE);

async function assertRefused(fixture: Fixture, code: ErrorCode, pattern: RegExp): Promise<void> {
  await assert.rejects(fixture.source().pipeline(SPEC).prepare(), (error) => {
    assert.ok(isRelayError(error, code), String(error));
    assert.match(error.message, pattern);
    return true;
  });
}

describe("what prepare finds", () => {
  let server: PostgresServer;
  before(async () => {
    server = await startServer(15);
  });
  after(async () => await server[Symbol.asyncDispose]());

  test("A17 B5 the relay's role cannot insert, and delete only with retention", async () => {
    for (const retention of [true, false]) {
      await using fixture = await openFixture(server, retention);
      const { rows } = await fixture.admin.query(
        `select has_table_privilege($1, $2, 'insert') as insert, has_table_privilege($1, $2, 'delete') as delete`,
        [ROLE, fixture.table],
      );
      assert.deepEqual(rows, [{ insert: false, delete: retention }]);
    }
  });

  const cases: readonly (readonly [title: string, sql: string, code: ErrorCode, pattern: RegExp])[] = [
    ["a missing table", "drop table $T", "TABLE_MISSING", /openoutbox.* does not exist/],
    ["a view", "alter table $T rename to u; create view $T as select 1", "TABLE_MISSING", /is a view/],
    [
      "missing columns, all of them named",
      "alter table $T drop locked_by, drop attempts",
      "COLUMN_MISSING",
      /missing columns attempts, locked_by/,
    ],
    [
      "columns of other types, all of them named",
      "alter table $T alter payload type text using '', alter created_at type timestamp",
      "COLUMN_MISTYPED",
      /payload is text, not bytea; created_at is timestamp without time zone, not timestamp with time zone/,
    ],
    ["no right to read", "revoke select on $T from $R", "GRANT_MISSING", /lacks SELECT on .*openoutbox/],
    ["no right to write", "revoke update on $T from $R", "GRANT_MISSING", /role relay .* lacks UPDATE on .*openoutbox/],
    ["no right to use the schema", "revoke usage on schema $S from $R", "GRANT_MISSING", /lacks USAGE on schema app/],
    ["no schema of the relay", "drop schema $O cascade", "SCHEMA_MISSING", /migrate up/],
  ];
  for (const [title, sql, code, pattern] of cases) {
    test(`B5 ${title}: ${code}`, async () => {
      await using fixture = await openFixture(server);
      const schema = quoteIdentifier(fixture.name.schema);
      const text = sql
        .replaceAll("$T", () => fixture.table)
        .replaceAll("$S", () => schema)
        .replaceAll("$R", () => role);
      await fixture.admin.query(text.replaceAll("$O", () => fixture.own.schema));
      await assertRefused(fixture, code, pattern);
      if (!sql.startsWith("revoke")) return;
      await fixture.admin.query(text.replace("revoke", "grant").replace(" from ", " to "));
      assert.deepEqual(await fixture.source().pipeline(SPEC).prepare(), { lanes: 1 });
    });
  }

  test("grants on the single columns that are needed are enough", async () => {
    await using fixture = await openFixture(server);
    const { admin, table } = fixture;
    const written = "status, attempts, last_error, available_at, locked_by, locked_at, delivered_at, updated_at";
    await admin.query(`alter table ${table} add secret text; revoke all on ${table} from ${role}`);
    await admin.query(
      `grant select (event_id, event_type, partition_key, payload, headers, created_at, ${written}), update (${written})
       on ${table} to ${role}`,
    );
    const store = fixture.source().pipeline(SPEC);
    await store.prepare();
    assert.equal(await store.probe([{ lane: 0, owner: "", epoch: 0n }]), false);
    await assert.rejects(store.prune(0, 1), (error) => isRelayError(error, "GRANT_MISSING"));
  });

  test("a name of a pipeline belongs to one table", async () => {
    await using fixture = await openFixture(server);
    await fixture.source().pipeline(SPEC).prepare();
    const { name, table } = fixture;
    await fixture.admin.query(`alter table ${table} rename to other`);
    const other = fixture.source({ table: { ...name, table: "other" } });
    await assert.rejects(other.pipeline(SPEC).prepare(), (error) => isRelayError(error, "CONFIG_INVALID"));
  });

  test("settings that make no sense are refused at once", () => {
    for (const options of [{ leaseMs: 0 }, { leaseMs: Number.NaN }, { relayId: "\0" }, { table: "a.b.c" }]) {
      assert.throws(
        () => openOutboxSource({ database: {}, ...options }),
        (error) => isRelayError(error, "CONFIG_INVALID"),
      );
    }
  });
});
