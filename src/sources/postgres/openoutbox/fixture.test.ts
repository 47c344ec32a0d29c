import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import pg from "pg";
import { openOutboxTableSql } from "../../../../test/servers/openoutbox-table.ts";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { relayRows } from "../../../../test/servers/relay-rows.ts";
import type { QueueSource } from "../../../ports/queue-store.ts";
import { grantsFor } from "../../../postgres/grants.ts";
import { quoteIdentifier, quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import { migrateUp } from "../../../postgres/migrations/migrate.ts";
import { openDatabase } from "../../../postgres/pool.ts";
import { type RelayTables, relayTables } from "../../../postgres/relay-tables.ts";
import { Stage } from "../../../testing/contracts/store-stage.ts";
import type { NewEvent, StoreSubject } from "../../../testing/contracts/store-subject.ts";
import { type OpenOutboxSourceOptions, openOutboxSource } from "./openoutbox-source.ts";

/** The relay's role has what `grantsFor` gives it and nothing else. */
export const ROLE = 'relay "role"; --';

export interface TableRow {
  readonly event_id: string;
  readonly status: string;
  readonly attempts: number;
  readonly last_error: string | null;
  readonly available_at: Date;
  readonly locked_by: string | null;
  readonly locked_at: Date | null;
  readonly delivered_at: Date | null;
  readonly updated_at: Date;
}

/** A table of its own with everything around it, spoken to as the application and the operator would. */
export interface Fixture extends AsyncDisposable {
  readonly name: TableName;
  /** Quoted. */
  readonly table: string;
  readonly relaySchema: string;
  readonly own: RelayTables;
  readonly admin: pg.Pool;
  /** As another process would open it; closed with the fixture. */
  source(options?: Partial<OpenOutboxSourceOptions>): QueueSource;
  row(id: string): Promise<TableRow>;
  /** Rows that break an invariant of the table's contract. */
  broken(): Promise<readonly TableRow[]>;
  ids(condition: string): Promise<string[]>;
}

export async function startServer(version: 15 | 18): Promise<PostgresServer> {
  const server = await startPostgres({ version });
  await server.query(`create role ${quoteIdentifier(ROLE)} login`);
  return server;
}

/** A stage over a fresh table on a server that is started once; both end with the test. */
export async function onStage(server: PostgresServer, play: (stage: Stage, fixture: Fixture) => Promise<void>) {
  await using fixture = await openFixture(server);
  await play(new Stage(subjectOf(fixture, server)), fixture);
  assert.deepEqual(await fixture.broken(), [], "rows that break an invariant of the table");
}

interface Place {
  readonly name: TableName;
  readonly relaySchema: string;
}

export async function openFixture(server: PostgresServer, retention = true): Promise<Fixture> {
  const admin = adminOf(server);
  return fixtureAt(await makePlace(server, admin, retention), server, admin);
}

/** Made once per server and emptied for each case: making it takes as long as a whole case. */
const places = new Map<PostgresServer, Place>();

/** The same table for all who ask for it, one after another. */
export async function openEmptied(server: PostgresServer): Promise<Fixture> {
  const admin = adminOf(server);
  const known = places.get(server);
  if (known === undefined) {
    const place = await makePlace(server, admin, true);
    places.set(server, place);
    return fixtureAt(place, server, admin);
  }
  const { instances, pipelines, lanes, holds, failedEvents } = relayTables(known.relaySchema);
  await admin.query(
    `truncate ${[quoteTable(known.name), instances, pipelines, lanes, holds, failedEvents].join(", ")}`,
  );
  return fixtureAt(known, server, admin);
}

function adminOf(server: PostgresServer): pg.Pool {
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  admin.on("error", () => {});
  return admin;
}

async function makePlace(server: PostgresServer, admin: pg.Pool, retention: boolean): Promise<Place> {
  const unique = randomUUID().slice(0, 8);
  const name = { schema: `app "${unique}"; '`, table: `openoutbox"; drop table x; -- '` };
  const relaySchema = `relay "${unique}"; $$ --`;
  await admin.query(`create schema ${quoteIdentifier(name.schema)}; ${openOutboxTableSql(quoteTable(name))}`);
  const owner = openDatabase({ url: server.url, relaySchema });
  await migrateUp(owner);
  await owner.close();
  await admin.query(grantsFor({ role: ROLE, relaySchema, tables: [name], retention }));
  return { name, relaySchema };
}

function fixtureAt({ name, relaySchema }: Place, server: PostgresServer, admin: pg.Pool): Fixture {
  const table = quoteTable(name);
  const database = { url: server.databaseUrl("postgres", ROLE), relaySchema };
  const sources: QueueSource[] = [];
  const rows = async (condition: string, values: readonly unknown[] = []) =>
    (await admin.query<TableRow>(`select * from ${table} t where ${condition}`, [...values])).rows;
  return {
    name,
    table,
    relaySchema,
    own: relayTables(relaySchema),
    admin,
    source: (options = {}) => {
      const source = openOutboxSource({ database, table: name, ...options });
      sources.push(source);
      return source;
    },
    row: async (id) => (await rows("event_id = $1", [id]))[0] ?? assert.fail(`no row ${id}`),
    broken: () =>
      rows(`(locked_at is not null) <> (status = 'DELIVERING') or (locked_by is not null) <> (status = 'DELIVERING')
        or (delivered_at is not null) <> (status = 'DELIVERED')`),
    ids: async (condition) => (await rows(condition)).map(({ event_id }) => event_id),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(sources.map((source) => source.close()));
      await admin.end();
    },
  };
}

/** The table for the contract suite and its stage. */
export function subjectOf(fixture: Fixture, server: PostgresServer): StoreSubject {
  const { admin, own, table } = fixture;
  const source = fixture.source({ relayId: "it's us" });
  const change = async (ids: readonly string[], assignments: string) =>
    void (await admin.query(`update ${table} set ${assignments} where event_id = any($1::uuid[])`, [ids]));
  return {
    source,
    store: (spec) => source.pipeline(spec),
    insert: async (events) => {
      for (const event of events) await insertRows(fixture, [event]);
    },
    insertInOneTransaction: async (statements) => {
      await admin.query("begin");
      for (const events of statements) await insertRows(fixture, events);
      await admin.query("commit");
    },
    pendingIds: () => fixture.ids("status in ('PENDING', 'DELIVERING')"),
    deliveredIds: () => fixture.ids("status = 'DELIVERED' and delivered_at is not null"),
    ...relayRows(admin, own),
    deleteRow: async (id) => void (await admin.query(`delete from ${table} where event_id = $1`, [id])),
    markByHand: (id) => change([id], "status = 'DELIVERED', delivered_at = now(), locked_by = null, locked_at = null"),
    resetByHand: (id) => change([id], "status = 'PENDING', attempts = 0, available_at = now()"),
    claimByOtherRelay: (ids) => change(ids, "status = 'DELIVERING', locked_by = 'other-relay', locked_at = now()"),
    ageClaims: (ids) => change(ids, "locked_at = locked_at - interval '10 minutes'"),
    restart: () => server.restart(),
    close: async () => await fixture[Symbol.asyncDispose](),
  };
}

async function insertRows({ admin, table }: Fixture, events: readonly NewEvent[]): Promise<void> {
  await admin.query(
    `insert into ${table} (event_id, event_type, partition_key, payload, headers)
     select * from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::jsonb[]) on conflict do nothing`,
    [
      events.map(({ id }) => id),
      events.map(({ type }) => type),
      events.map(({ key }) => key),
      events.map(({ payload }) => payload),
      events.map(({ headers }) => JSON.stringify(headers)),
    ],
  );
}

test("the name of the fixture's role has to be quoted", () => {
  assert.notEqual(quoteIdentifier(ROLE), ROLE);
});
