import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import type { EventTable } from "../postgres/event-table.ts";
import { displayTable, type TableName } from "../postgres/identifiers.ts";
import { isManagedOutbox } from "../postgres/managed/managed-names.ts";
import type { Database } from "../postgres/pool.ts";
import { type TransactionSettings, transaction } from "../postgres/transaction.ts";
import { eventTable, isOpenOutbox, SET_BACK } from "../sources/openoutbox/openoutbox-table.ts";
import { parkedShape } from "../sources/postgres/log/parked-shape.ts";
import { readShape } from "../sources/postgres/table-discovery.ts";
import { logEvents } from "./log-events.ts";

/** Where an operation works: the database, and the names of columns that the usual ones do not fit. */
export interface OperationTarget {
  readonly database: Database;
  readonly columns: ColumnNames;
}

/**
 * A table of events as operations see it, whatever its make. All but the names are SQL fragments over the table's alias
 * `t`; conditions are never null.
 */
export interface EventSource {
  /** `schema.table`. */
  readonly name: string;
  /** Those that read it, or did. */
  readonly pipelines: readonly string[];
  readonly table: EventTable;
  /** The column that tells the order of writing. */
  readonly order: string;
  /** For rows that wait, in words that an index finds. */
  readonly waiting: string;
  readonly delivered: string;
  /** For a row that was given up in the table itself; null where the table cannot say so. */
  readonly givenUp: string | null;
  /** Assignments that make a given-up row wait again; null where the relay's own hold is all there is. */
  readonly setBack: string | null;
  /** Assignments that keep a row from being read again; null where a given-up row is never read. */
  readonly setAside: string | null;
  /** True where whatever waits is a copy that goes when the waiting is over, as with a log. */
  readonly isParked: boolean;
}

export interface BrokenEventSource {
  readonly source: string;
  readonly reason: string;
}

interface EventSources {
  readonly usable: readonly EventSource[];
  /** A table that cannot be looked at keeps nobody from looking at the others. */
  readonly broken: readonly BrokenEventSource[];
}

/** A person waits for the answer, and the delivery must not notice. */
const READ_MS = 3_000;

export function operationReadSettings(database: Database, doing: string, table?: string): TransactionSettings {
  return {
    context: database.errorContext(doing, table),
    statementTimeoutMs: READ_MS,
    lockTimeoutMs: READ_MS,
    readOnly: true,
    settings: { jit: "off", work_mem: "32MB" },
  };
}

/** The tables that the relay's schema knows of, all or the one that is named. */
export async function eventSources(target: OperationTarget, wanted?: string): Promise<EventSources> {
  const found = await registeredTables(target.database);
  const chosen = found.filter(({ name }) => wanted === undefined || displayTable(name) === wanted);
  const usable: EventSource[] = [];
  const broken: BrokenEventSource[] = [];
  for (const table of chosen) {
    const { name } = table;
    try {
      usable.push(await eventsOf(target, table));
    } catch (error) {
      if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
      broken.push({ source: displayTable(name), reason: reasonOf(error) });
    }
  }
  return { usable, broken };
}

interface RegisteredTable {
  readonly name: TableName;
  readonly pipelines: readonly string[];
  readonly columns: readonly string[];
  /** By the places that its readers have written down; null for a queue. */
  readonly log: "table" | "wal" | null;
}

async function eventsOf(target: OperationTarget, { columns, log, name, pipelines }: RegisteredTable) {
  if (log === "wal") {
    const what = `The events of ${displayTable(name)} are in the write-ahead log, and nobody can look them up there`;
    throw new RelayError(
      "CONFIG_INVALID",
      `${what}: \`outbox-relay log list\` and \`outbox-relay dlq list\` show the rest`,
    );
  }
  if (isManagedOutbox(columns)) return await logEvents(target, name, pipelines, "managed");
  if (log === "table") return await logEvents(target, name, pipelines, "tail");
  return isOpenOutbox(columns) ? openOutboxEvents(name, pipelines) : await outboxEvents(target, name, pipelines);
}

/** Dead letters of a log are copies beside it, each of one pipeline. */
export function parkedEvents(database: Database, name: TableName, pipeline: string): EventSource {
  const shape = parkedShape(database, pipeline, name);
  return {
    name: displayTable(name),
    pipelines: [pipeline],
    table: shape,
    order: shape.order.column,
    waiting: shape.main,
    delivered: shape.delivered,
    givenUp: null,
    setBack: null,
    setAside: null,
    isParked: true,
  };
}

async function registeredTables(database: Database): Promise<readonly RegisteredTable[]> {
  const rows = await transaction(database.pool, operationReadSettings(database, "listing the sources"), (session) =>
    session.rows(`select p.source_schema, p.source_table, json_agg(p.name order by p.name),
  (select json_agg(a.attname) from pg_catalog.pg_attribute a
    join pg_catalog.pg_class c on c.oid = a.attrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = p.source_schema and c.relname = p.source_table and a.attnum > 0 and not a.attisdropped),
  (select case when bool_or(l.position ? 'lsn') then 'wal' when bool_or(l.position is not null) then 'table' end
    from ${database.tables.lanes} l join ${database.tables.pipelines} q on q.name = l.pipeline
    where q.source_schema = p.source_schema and q.source_table = p.source_table)
from ${database.tables.pipelines} p group by 1, 2 order by 1, 2`),
  );
  return rows.map(([schema, table, pipelines, columns, log]) => ({
    name: { schema: schema ?? "", table: table ?? "" },
    pipelines: JSON.parse(pipelines ?? "[]") as readonly string[],
    columns: JSON.parse(columns ?? "[]") as readonly string[],
    log: (log ?? null) as RegisteredTable["log"],
  }));
}

async function outboxEvents(
  { database, columns }: OperationTarget,
  name: TableName,
  pipelines: readonly string[],
): Promise<EventSource> {
  const shape = await readShape(database, name, columns);
  return {
    name: displayTable(name),
    pipelines,
    table: shape,
    order: shape.order.column,
    waiting: shape.main,
    delivered: shape.delivered,
    givenUp: shape.givenUp,
    setBack: shape.setBack,
    setAside: shape.givenUp === null ? shape.markDelivered : null,
    isParked: false,
  };
}

function openOutboxEvents(name: TableName, pipelines: readonly string[]): EventSource {
  return {
    name: displayTable(name),
    pipelines,
    table: eventTable(name),
    order: "t.created_at",
    waiting: "t.status in ('PENDING', 'DELIVERING')",
    delivered: "t.status is not distinct from 'DELIVERED'",
    givenUp: "t.status is not distinct from 'DEAD'",
    setBack: SET_BACK,
    setAside: null,
    isParked: false,
  };
}
