import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { makeHostile } from "../../../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { relayRows } from "../../../../test/servers/relay-rows.ts";
import type { TypeFilter } from "../../../ports/queue-store.ts";
import { grantsFor } from "../../../postgres/grants.ts";
import { quoteIdentifier, quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import { managedTableSql } from "../../../postgres/managed/managed-table.sql.ts";
import { migrateUp } from "../../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../../postgres/pool.ts";
import { relayTables } from "../../../postgres/relay-tables.ts";
import { applicableCases } from "../../../testing/contracts/contract-case.ts";
import { membershipContract } from "../../../testing/contracts/membership-contract.ts";
import { queueStoreContract } from "../../../testing/contracts/queue-store-contract.ts";
import { backlogCases } from "../../../testing/contracts/store-backlog.ts";
import { contentCases } from "../../../testing/contracts/store-content.ts";
import { deadLetterCases } from "../../../testing/contracts/store-dead-letters.ts";
import { holdCases } from "../../../testing/contracts/store-holds.ts";
import { logCases } from "../../../testing/contracts/store-log.ts";
import { readingCases } from "../../../testing/contracts/store-reading.ts";
import { SPEC } from "../../../testing/contracts/store-stage.ts";
import type { NewEvent, StoreHarness, StoreSubject } from "../../../testing/contracts/store-subject.ts";
import type { Difference } from "../tail/difference.ts";
import { horizonKind } from "../tail/horizon-kind.ts";
import type { TableLogOptions } from "../tail/table-log.ts";
import { tailKind } from "../tail/tail-kind.ts";
import type { LogKind } from "./log-kind.ts";
import { SettledAhead } from "./log-lane.ts";
import { logSource } from "./log-source.ts";

const ROLE = "relay_role";

/** A kind of log: how its table is made, and what its columns are called. */
interface Log {
  readonly title: string;
  readonly create: (table: TableName) => string;
  readonly kind: (options: TableLogOptions) => LogKind<Difference>;
  readonly names: { readonly position: string; readonly id: string; readonly type: string; readonly key: string };
  /** The condition on a row of `t` that lies behind a checkpoint, `s.position`. */
  readonly isRead: string;
}

const BY_SNAPSHOTS = (xid: string, position: string) => `coalesce(
  pg_visible_in_snapshot(t.${xid}, (s.position ->> 'from')::pg_snapshot)
  or pg_visible_in_snapshot(t.${xid}, (s.position ->> 'to')::pg_snapshot)
    and t.${position} <= (s.position ->> 'after')::bigint, false)`;

const MANAGED: Log = {
  title: "managed outbox",
  create: (table) => managedTableSql({ table, payload: "bytea", partition: "1 day", wakeUp: false }),
  kind: tailKind,
  names: { position: "id", id: "event_id", type: "event_type", key: "event_key" },
  isRead: BY_SNAPSHOTS("xid", "id"),
};

const eventTableSql = (table: TableName, xid: string) => `create schema ${quoteIdentifier(table.schema)};
  create table ${quoteTable(table)} (position bigint generated always as identity primary key, id uuid not null unique,
    type text not null, stream_id text, payload bytea, headers jsonb, correlation_id text,
    created_at timestamptz not null default now() ${xid})`;
const NAMES = { position: "position", id: "id", type: "type", key: "stream_id" };

const EVENT_TABLE: Log = {
  title: "event table",
  create: (table) => `${eventTableSql(table, ", txid xid8 not null default pg_current_xact_id()")};
    create index on ${quoteTable(table)} (txid, position)`,
  kind: tailKind,
  names: NAMES,
  isRead: BY_SNAPSHOTS("txid", "position"),
};

const PLAIN_EVENT_TABLE: Log = {
  title: "event table without the transaction",
  create: (table) => eventTableSql(table, ""),
  // The cases read at once what they have just written.
  kind: (options) => horizonKind({ ...options, pauseMs: 0 }),
  names: NAMES,
  isRead: "t.position <= (s.position ->> 'after')::bigint",
};

/** The cases in which the kind of log matters; the others concern the relay's own tables alone. */
const READING_CASES = [
  ...readingCases,
  ...logCases,
  ...contentCases,
  ...holdCases,
  ...deadLetterCases,
  ...backlogCases,
];

const CAPABILITIES: StoreHarness["capabilities"] = {
  durableClaims: false,
  ownStatus: false,
  headers: true,
  prunes: false,
  restart: true,
  isLog: true,
  payloads: "bytes",
};

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}${version === 15 ? ", H1 hostile defaults" : ""}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startPostgres({ version });
      await server.query(`create role ${ROLE} login`);
      if (version === 15) await makeHostile(server, ROLE);
    });
    after(async () => await server[Symbol.asyncDispose]());
    for (const log of version === 15 ? [MANAGED, EVENT_TABLE, PLAIN_EVENT_TABLE] : [MANAGED]) {
      const harness: StoreHarness = { capabilities: CAPABILITIES, open: () => openSubject(server, log) };
      const cases = log === MANAGED ? [...queueStoreContract, ...membershipContract] : READING_CASES;
      for (const check of applicableCases(cases, harness))
        test(`${log.title}: ${check.rule}`, () => check.run(harness));
    }
  });
}

/** Made once per server and kind, and emptied for each case: making it takes longer than a case. */
const places = new Map<string, { readonly table: TableName; readonly relaySchema: string }>();

async function emptyPlace(server: PostgresServer, admin: pg.Pool, log: Log) {
  const key = `${server.port} ${log.title}`;
  const known = places.get(key);
  if (known !== undefined) {
    const { instances, pipelines, lanes, holds, failedEvents, parked, passed } = relayTables(known.relaySchema);
    const tables = [quoteTable(known.table), instances, pipelines, lanes, holds, failedEvents, parked, passed];
    await admin.query(`truncate ${tables.join(", ")}`);
    return known;
  }
  const unique = randomUUID().slice(0, 8);
  const place = { table: { schema: `app "${unique}"`, table: "out;box" }, relaySchema: `relay ${unique}` };
  const { table, relaySchema } = place;
  await admin.query(log.create(table));
  const owner = openDatabase({ url: server.url, relaySchema });
  await migrateUp(owner);
  await owner.close();
  await admin.query(grantsFor({ role: ROLE, relaySchema, tables: [table], retention: true }));
  places.set(key, place);
  return place;
}

async function openSubject(server: PostgresServer, log: Log): Promise<StoreSubject> {
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  admin.on("error", () => {});
  const { table, relaySchema } = await emptyPlace(server, admin, log);
  const database = openDatabase({ url: server.databaseUrl("postgres", ROLE), relaySchema });
  const source = logSource({
    database,
    name: "log",
    table,
    kind: (spec) => log.kind({ database, reference: table, columns: {}, spec, start: "beginning" }),
  });
  const subject = subjectOf(admin, { log, name: table, database, source });
  return {
    ...subject,
    restart: () => server.restart(),
    close: async () => {
      await source.close();
      await database.close();
      await admin.end();
    },
  };
}

interface Checkpointed {
  readonly pipeline: string;
  readonly position: string | null;
}

interface Fate {
  readonly id: string;
  readonly isParked: boolean;
  readonly isDead: boolean;
}

interface Subject {
  readonly log: Log;
  readonly name: TableName;
  readonly database: Database;
  readonly source: StoreSubject["source"];
}

function subjectOf(admin: pg.Pool, { log, name, database, source }: Subject): StoreSubject {
  const { id: idName, position: positionName, type: typeName } = log.names;
  const own = database.tables;
  const table = quoteTable(name);
  const marks = log.kind({ database, reference: name, columns: {}, spec: SPEC, start: "beginning" });
  const filters = new Map<string, TypeFilter>();
  const takes = (pipeline: string, type: string) => {
    const rules = filters.get(pipeline) ?? null;
    return rules === null || rules.find(({ pattern }) => pattern === "*" || pattern === type)?.mine === true;
  };
  /** What every lane has passed, according to its checkpoint. */
  const fates = async () => {
    const lanes = await admin.query<Checkpointed>(`select pipeline, lane, position::text from ${own.lanes}`);
    const { rows } = await admin.query<Fate>(`select t.${idName}::text as id,
      exists (select from ${own.parked} p where p.event_id = t.${idName}::text) as "isParked",
      exists (select from ${own.holds} h where h.event_id = t.${idName}::text and h.state = 'dead') as "isDead"
      from ${table} t`);
    const waiting = new Set<string>();
    for (const { pipeline, position } of lanes.rows) {
      const ahead = new SettledAhead(marks, position === null ? [] : (await marks.decode(position)).ahead);
      const left = await admin.query<{ id: string; mark: number; type: string }>(
        `select t.${idName}::text as id, t.${positionName}::int as mark, t.${typeName} as type
         from ${table} t cross join (select $1::jsonb as position) s
         where not ${log.isRead}
           and not exists (select from ${own.passed} p where p.pipeline = $2 and p.event_id = t.${idName}::text)`,
        [position, pipeline],
      );
      for (const { id, mark, type } of left.rows) {
        if (takes(pipeline, type) && !ahead.meet({ segment: { from: "", to: null }, mark })) waiting.add(id);
      }
    }
    return rows.map((row) => ({ ...row, isPassed: !waiting.has(row.id) && !row.isParked }));
  };
  const ids = async (isMeant: (fate: Fate & { isPassed: boolean }) => boolean) =>
    (await fates()).filter(isMeant).map(({ id }) => id);
  return {
    source,
    store(spec) {
      filters.set(spec.name, spec.types);
      return source.pipeline(spec);
    },
    insert: async (events) => {
      for (const event of events) await insertRows(admin, table, log, [event]);
    },
    insertInOneTransaction: async (statements) => {
      await admin.query("begin");
      for (const events of statements) await insertRows(admin, table, log, events);
      await admin.query("commit");
    },
    pendingIds: () => ids(({ isPassed, isDead }) => !isPassed && !isDead),
    deliveredIds: () => ids(({ isPassed }) => isPassed),
    ...relayRows(admin, own),
    deleteRow: never,
    markByHand: never,
    close: async () => {},
  };
}

const never = () => Promise.reject(new Error("a log's rows are not touched"));

async function insertRows(admin: pg.Pool, table: string, { names }: Log, events: readonly NewEvent[]): Promise<void> {
  const rows = events.map(({ id, type, key, payload, headers, correlationId }) => ({
    id,
    type,
    key,
    payload: payload.toString("hex"),
    headers,
    correlationId,
  }));
  await admin.query(
    `insert into ${table} (${names.id}, ${names.type}, ${names.key}, payload, headers, correlation_id)
     select e.id, e.type, e.key, decode(e.payload, 'hex'), e.headers, e.correlation
     from rows from (jsonb_to_recordset($1)
       as (id uuid, type text, key text, payload text, headers jsonb, "correlationId" text)) with ordinality
       as e (id, type, key, payload, headers, correlation, number)
     order by e.number on conflict do nothing`,
    [JSON.stringify(rows)],
  );
}
