import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { makeHostile } from "../../../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { relayRows } from "../../../../test/servers/relay-rows.ts";
import { typeMatcher } from "../../../core/type-filter.ts";
import type { TypeFilter } from "../../../ports/queue-store.ts";
import { quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import { migrateUp } from "../../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../../postgres/pool.ts";
import { applicableCases } from "../../../testing/contracts/contract-case.ts";
import { queueStoreContract } from "../../../testing/contracts/queue-store-contract.ts";
import { SPEC } from "../../../testing/contracts/store-stage.ts";
import type { NewEvent, StoreHarness, StoreSubject } from "../../../testing/contracts/store-subject.ts";
import type { LogRow } from "../log/log-kind.ts";
import { SettledAhead } from "../log/log-lane.ts";
import { logSource } from "../log/log-source.ts";
import { slotName } from "./slot.ts";
import { walKind } from "./wal-kind.ts";
import { orderOf, readPosition, type WalSegment } from "./wal-position.ts";

/** The log comes in one line, and so it is read by one. */
const SEVERAL_LANES =
  /number of lanes|a new lane|lanes split|sees a pause|a lane without an owner|requested lanes|wins each|has its own slots/;

/** What the log forgets must stay with the event; and only the reader knows what exists, or that no pipeline reads it. */
const OTHERWISE = /without its payload|D6 types|D6 of several|backlog of an empty table|backlog of a pipeline/;

/** Pipelines of the contract. Their slots are made with the table: the cases write before anybody reads. */
const PIPELINES = ["contract", "another", "x", "y", "narrow", "wide"];

const ROLE = "relay_role";

describe("PostgreSQL 18, H1 hostile defaults", () => {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres({
      version: 18,
      flags: ["-c", "max_replication_slots=400", "-c", "max_wal_senders=20"],
    });
    await server.query(`create role ${ROLE} login superuser`);
    await makeHostile(server, ROLE);
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
  for (const check of applicableCases(queueStoreContract, harness)) {
    if (SEVERAL_LANES.test(check.rule) || OTHERWISE.test(check.rule)) continue;
    test(`write-ahead log: ${check.rule}`, () => check.run(harness));
  }
});

async function openSubject(server: PostgresServer): Promise<StoreSubject> {
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  admin.on("error", () => {});
  const unique = randomUUID().slice(0, 8);
  const table = { schema: "public", table: `out;box ${unique}` };
  await admin.query(`create table ${quoteTable(table)} (id uuid primary key, event_type text not null, key text,
    payload bytea, headers jsonb, correlation_id text)`);
  const database = openDatabase({ url: server.databaseUrl("postgres", ROLE), relaySchema: `relay ${unique}` });
  await migrateUp(database);
  const source = logSource({
    database,
    name: "log",
    table,
    kind: (spec) =>
      walKind({ database, table, messages: null, columns: {}, preset: "plain", spec, start: "beginning" }),
  });
  const witness = await openWitness(database, table, `witness_${unique}`);
  for (const name of PIPELINES) {
    await admin.query("select pg_create_logical_replication_slot($1, 'pgoutput')", [await slotName(database, name)]);
  }
  return {
    ...subjectOf(admin, table, database, source, witness.rows),
    restart: () => server.restart(),
    close: async () => {
      await witness.close();
      await source.close();
      await admin.query("select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active");
      await database.close();
      await admin.end();
    },
  };
}

/** Reads everything from its own slot, which never moves: so it knows the place of each row. */
async function openWitness(database: Database, table: TableName, slot: string) {
  const kind = walKind({
    database,
    table,
    messages: null,
    columns: {},
    preset: "plain",
    spec: SPEC,
    start: "beginning",
    slot,
  });
  await kind.prepare();
  const { place } = await kind.decode(await kind.start());
  return {
    close: () => kind.close(),
    async rows(): Promise<readonly LogRow<WalSegment>[]> {
      await kind.rest();
      const pass = await kind.open({ heads: new Map([[0, place]]), laneCount: 1 });
      const rows: LogRow<WalSegment>[] = [];
      for (let page = await pass.next(1_000, 1e9); !page.isEnd; page = await pass.next(1_000, 1e9))
        rows.push(...page.rows);
      return rows;
    },
  };
}

function subjectOf(
  admin: pg.Pool,
  name: TableName,
  database: Database,
  source: StoreSubject["source"],
  everything: () => Promise<readonly LogRow<WalSegment>[]>,
): StoreSubject {
  const own = database.tables;
  const table = quoteTable(name);
  const filters = new Map<string, TypeFilter>();
  const texts = async (sql: string) => new Set((await admin.query<{ id: string }>(sql)).rows.map(({ id }) => id));
  const fates = async () => {
    const rows = await everything();
    const parked = await texts(`select event_id as id from ${own.parked}`);
    const dead = await texts(`select event_id as id from ${own.holds} where state = 'dead'`);
    const waiting = new Set<string>(parked);
    const lanes = await admin.query<{ pipeline: string; position: string | null }>(
      `select pipeline, position::text from ${own.lanes}`,
    );
    for (const { pipeline, position } of lanes.rows) {
      const noted = await texts(`select event_id as id from ${own.passed} where pipeline = '${pipeline}'`);
      const written = position === null ? null : readPosition(position);
      const isAhead = new SettledAhead({ orderOf }, written?.ahead ?? []);
      const takes = typeMatcher(filters.get(pipeline) ?? null);
      for (const row of rows) {
        const { lsn } = row.segment;
        const isBehind =
          written !== null &&
          (lsn < written.place.segment.lsn || (lsn === written.place.segment.lsn && row.mark <= written.place.mark));
        const isDone = isBehind || isAhead.meet(row) || noted.has(row.event.id);
        if (!isDone && takes(row.event)) waiting.add(row.event.id);
      }
    }
    return rows.map(({ event: { id } }) => ({ id, isPassed: !waiting.has(id), isDead: dead.has(id) }));
  };
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
    pendingIds: async () => (await fates()).filter((it) => !it.isPassed && !it.isDead).map(({ id }) => id),
    deliveredIds: async () => (await fates()).filter((it) => it.isPassed).map(({ id }) => id),
    ...relayRows(admin, own),
    deleteRow: never,
    markByHand: never,
    close: async () => {},
  };
}

const never = () => Promise.reject(new Error("a log's rows are not touched"));

async function insertRows(admin: pg.Pool, table: string, events: readonly NewEvent[]): Promise<void> {
  for (const { correlationId, headers, id, key, payload, type } of events) {
    await admin.query(
      `insert into ${table} (id, event_type, key, payload, headers, correlation_id) values ($1, $2, $3, $4, $5, $6)
       on conflict do nothing`,
      [id, type, key, payload, headers, correlationId],
    );
  }
}
