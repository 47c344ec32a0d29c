import type pg from "pg";
import { grantsFor } from "../../../src/postgres/grants.ts";
import { displayTable, quoteIdentifier, quoteTable, type TableName } from "../../../src/postgres/identifiers.ts";
import { managedTableSql } from "../../../src/postgres/managed/managed-table.sql.ts";
import { BILLING, ORDERS, type OutboxTable } from "../../e2e/outbox-tables.ts";
import type { Stage } from "../../e2e/stage.ts";
import { readOutbox } from "../../e2e/writer.ts";
import { MANAGED, WAL, WAL_PUBLICATION } from "../log-tables.ts";

export type SourceKind = "flag" | "managed" | "wal";

export interface NewEvent {
  readonly id: string;
  readonly key: string | null;
  readonly sequence: number;
  readonly type: string;
  readonly payload: string;
  readonly crc: number;
}

/** What a proof writes to and reads back: the tables of one kind of source. */
export interface ProvedOutbox {
  readonly source: SourceKind;
  readonly tables: readonly TableName[];
  /** Those of them that every service might have; the others are made by `create`. */
  readonly flagTables: readonly OutboxTable[];
  create(stage: Stage): Promise<void>;
  /** Into the table at this place of the list. */
  insert(client: pg.Client, at: number, event: NewEvent): Promise<void>;
  /** Every committed event after the drain, and whether nothing is left to do for it as far as the database says. */
  rows(pool: pg.Pool): Promise<ReadonlyMap<string, boolean>>;
}

export function provedOutbox(source: SourceKind): ProvedOutbox {
  return { flag, managed, wal }[source];
}

const FLAG_TABLES = [ORDERS, BILLING];

const flag: ProvedOutbox = {
  source: "flag",
  tables: FLAG_TABLES,
  flagTables: FLAG_TABLES,
  create: async () => {},
  async insert(client, at, { id, key, type, payload }) {
    const table = FLAG_TABLES[at]!;
    await client.query(
      `insert into ${quoteTable(table)} (id, aggregate_id, event_type, payload) values ($1, $2, $3, $4)`,
      [id, key, type, table.payload === "json" ? payload : Buffer.from(payload)],
    );
  },
  rows: async (pool) => new Map((await readOutbox(pool, FLAG_TABLES)).map(({ id, delivered }) => [id, delivered])),
};

const managed: ProvedOutbox = {
  source: "managed",
  tables: [MANAGED],
  flagTables: [],
  async create({ sql, role }) {
    await sql(managedTableSql({ table: MANAGED, payload: "text", partition: "1 day", wakeUp: false }));
    await sql(grantsFor({ role, tables: [MANAGED] }));
  },
  async insert(client, _, { id, key, type, payload }) {
    await client.query(
      `insert into ${quoteTable(MANAGED)} (event_id, event_key, event_type, payload) values ($1, $2, $3, $4)`,
      [id, key, type, payload],
    );
  },
  rows: (pool) => readLog(pool, `select event_id::text as id from ${quoteTable(MANAGED)}`),
};

/** Every other row is deleted where it was inserted, as people do who need it in the log only. */
const wal: ProvedOutbox = {
  source: "wal",
  tables: [WAL],
  flagTables: [],
  async create({ sql, role }) {
    const table = quoteTable(WAL);
    await sql(`create schema ${quoteIdentifier(WAL.schema)};
      create table ${table} (id uuid primary key, aggregate_id text, event_type text not null, payload text not null,
        created_at timestamptz not null default clock_timestamp());
      create publication ${quoteIdentifier(WAL_PUBLICATION)} for table ${table} with (publish = 'insert');
      alter role ${quoteIdentifier(role)} replication;
      ${grantsFor({ role, tables: [WAL] })}`);
  },
  async insert(client, _, { id, key, sequence, type, payload, crc }) {
    await client.query(
      `with event as (
         insert into ${quoteTable(WAL)} (id, aggregate_id, event_type, payload) values ($1, $2, $3, $4) returning id)
       insert into e2e.ledger (source, id, key, sequence, crc) select $5, id, $2, $6, $7 from event`,
      [id, key, type, payload, displayTable(WAL), sequence, crc],
    );
    if (crc % 2 === 0) await client.query(`delete from ${quoteTable(WAL)} where id = $1`, [id]);
  },
  rows: (pool) => readLog(pool, "select id::text from e2e.ledger"),
};

async function readLog(pool: pg.Pool, ids: string): Promise<ReadonlyMap<string, boolean>> {
  const { rows } = await pool.query<{ id: string; done: boolean }>(
    `select e.id, not exists (select from outbox_relay.parked p where p.event_id = e.id) as done from (${ids}) e`,
  );
  return new Map(rows.map(({ id, done }) => [id, done]));
}
