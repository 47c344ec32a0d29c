import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { makeHostile } from "../../../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { relayRows } from "../../../../test/servers/relay-rows.ts";
import type { TypeFilter } from "../../../ports/queue-store.ts";
import { grantsFor } from "../../../postgres/grants.ts";
import { quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import { managedTableSql } from "../../../postgres/managed/managed-table.sql.ts";
import { migrateUp } from "../../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../../postgres/pool.ts";
import { relayTables } from "../../../postgres/relay-tables.ts";
import { applicable } from "../../../testing/contracts/contract-case.ts";
import { membershipContract } from "../../../testing/contracts/membership-contract.ts";
import { queueStoreContract } from "../../../testing/contracts/queue-store-contract.ts";
import { SPEC } from "../../../testing/contracts/store-stage.ts";
import type { NewEvent, StoreHarness, StoreSubject } from "../../../testing/contracts/store-subject.ts";
import { tailKind } from "../tail/tail-kind.ts";
import { SettledAhead } from "./log-lane.ts";
import { logSource } from "./log-source.ts";

const ROLE = "relay_role";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}${version === 15 ? ", H1 hostile defaults" : ""}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startPostgres({ version });
      await server.query(`create role ${ROLE} login`);
      if (version === 15) await makeHostile(server, ROLE);
    });
    after(async () => await server[Symbol.asyncDispose]());
    const harness: StoreHarness = {
      capabilities: {
        durableClaims: false,
        ownStatus: false,
        headers: true,
        prunes: false,
        restart: true,
        isLog: true,
        payloads: "bytes",
      },
      open: () => openSubject(server),
    };
    for (const check of applicable([...queueStoreContract, ...membershipContract], harness)) {
      test(`managed outbox: ${check.rule}`, () => check.run(harness));
    }
  });
}

/** Made once per server and emptied for each case: making it takes longer than a case. */
const places = new Map<number, { readonly table: TableName; readonly relaySchema: string }>();

async function emptyPlace(server: PostgresServer, admin: pg.Pool) {
  const known = places.get(server.port);
  if (known !== undefined) {
    const { instances, pipelines, lanes, holds, failedEvents, parked, passed } = relayTables(known.relaySchema);
    const tables = [quoteTable(known.table), instances, pipelines, lanes, holds, failedEvents, parked, passed];
    await admin.query(`truncate ${tables.join(", ")}`);
    return known;
  }
  const unique = randomUUID().slice(0, 8);
  const place = { table: { schema: `app "${unique}"`, table: "out;box" }, relaySchema: `relay ${unique}` };
  const { table, relaySchema } = place;
  await admin.query(managedTableSql({ table, payload: "bytea", partition: "1 day", wakeUp: false }));
  const owner = openDatabase({ url: server.url, relaySchema });
  await migrateUp(owner);
  await owner.close();
  await admin.query(grantsFor({ role: ROLE, relaySchema, tables: [table], retention: true }));
  places.set(server.port, place);
  return place;
}

async function openSubject(server: PostgresServer): Promise<StoreSubject> {
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  admin.on("error", () => {});
  const { table, relaySchema } = await emptyPlace(server, admin);
  const database = openDatabase({ url: server.databaseUrl("postgres", ROLE), relaySchema });
  const source = logSource({
    database,
    name: "log",
    table,
    kind: (spec) => tailKind({ database, reference: table, columns: {}, spec, start: "beginning" }),
  });
  const subject = subjectOf(admin, table, database, source);
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

function subjectOf(admin: pg.Pool, name: TableName, database: Database, source: StoreSubject["source"]): StoreSubject {
  const own = database.tables;
  const table = quoteTable(name);
  const marks = tailKind({ database, reference: name, columns: {}, spec: SPEC, start: "beginning" });
  const filters = new Map<string, TypeFilter>();
  const takes = (pipeline: string, type: string) => {
    const rules = filters.get(pipeline) ?? null;
    return rules === null || rules.find(({ pattern }) => pattern === "*" || pattern === type)?.mine === true;
  };
  /** What every lane has passed, according to its checkpoint. */
  const fates = async () => {
    const lanes = await admin.query<Checkpointed>(`select pipeline, lane, position::text from ${own.lanes}`);
    const { rows } = await admin.query<Fate>(`select event_id::text as id,
      exists (select from ${own.parked} p where p.event_id = t.event_id::text) as "isParked",
      exists (select from ${own.holds} h where h.event_id = t.event_id::text and h.state = 'dead') as "isDead"
      from ${table} t`);
    const waiting = new Set<string>();
    for (const { pipeline, position } of lanes.rows) {
      const ahead = new SettledAhead(marks, position === null ? [] : (await marks.decode(position)).ahead);
      const left = await admin.query<{ id: string; mark: number; type: string }>(
        `select event_id::text as id, id::int as mark, event_type as type from ${table} t
         cross join (select ($1::jsonb ->> 'from')::pg_snapshot as seen, ($1::jsonb ->> 'to')::pg_snapshot as upto) s
         where not coalesce(pg_visible_in_snapshot(t.xid, s.seen)
             or pg_visible_in_snapshot(t.xid, s.upto) and t.id <= ($1::jsonb ->> 'after')::bigint, false)
           and not exists (select from ${own.passed} p where p.pipeline = $2 and p.event_id = t.event_id::text)`,
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
      for (const event of events) await insertRows(admin, table, [event]);
    },
    insertInOneTransaction: async (statements) => {
      await admin.query("begin");
      for (const events of statements) await insertRows(admin, table, events);
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

async function insertRows(admin: pg.Pool, table: string, events: readonly NewEvent[]): Promise<void> {
  const rows = events.map(({ id, type, key, payload, headers, correlationId }) => ({
    id,
    type,
    key,
    payload: payload.toString("hex"),
    headers,
    correlationId,
  }));
  await admin.query(
    `insert into ${table} (event_id, event_type, event_key, payload, headers, correlation_id)
     select e.id, e.type, e.key, decode(e.payload, 'hex'), e.headers, e.correlation
     from rows from (jsonb_to_recordset($1)
       as (id uuid, type text, key text, payload text, headers jsonb, "correlationId" text)) with ordinality
       as e (id, type, key, payload, headers, correlation, number)
     order by e.number on conflict do nothing`,
    [JSON.stringify(rows)],
  );
}
