import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import type { EventTable } from "../postgres/event-table.ts";
import { displayTable, type TableName } from "../postgres/identifiers.ts";
import { isLogPlaceSql } from "../postgres/log-place.ts";
import { isManagedOutbox } from "../postgres/managed/managed-names.ts";
import type { Database } from "../postgres/pool.ts";
import { statement, type TransactionSettings } from "../postgres/transaction.ts";
import { eventTable, isOpenOutbox, SET_BACK } from "../sources/openoutbox/openoutbox-table.ts";
import { parkedShape } from "../sources/postgres/log/parked-shape.ts";
import { readShape } from "../sources/postgres/table-discovery.ts";
import { fromCatalogue } from "./catalogue-memory.ts";
import { readLogShape, shapedLogEvents } from "./log-events.ts";
import type { ShownRules } from "./redact-shown.ts";

/** Where an operation works: the database, and the names of columns that the usual ones do not fit. */
export interface OperationTarget {
  readonly database: Database;
  readonly columns: ColumnNames;
  /** What nobody is to see of headers and payloads; absent: all may be seen. */
  readonly shown?: ShownRules;
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
  /** Assignments that make a delivered row wait again; null where the row says nothing of itself, as in a log. */
  readonly unmark: string | null;
  /** Assignments that keep a row from being read again; null where a given-up row is never read. */
  readonly setAside: string | null;
  /** For rows of a log that some reader may not have passed yet, in words that an index finds; null for a queue. */
  readonly unread: string | null;
  /** True where block filters tell which part of the table holds a key or a correlation id. */
  readonly isSifted: boolean;
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
    settings: { jit: "off", work_mem: "32MB", max_parallel_workers_per_gather: "0" },
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
  /** Another one once its columns or rights have changed. */
  readonly version: string;
  /** Of a log: what every lane has passed, as a transaction or a position; null where one has not begun. */
  readonly reached: string | null;
}

async function eventsOf(target: OperationTarget, registered: RegisteredTable): Promise<EventSource> {
  const { columns, log, name, pipelines, reached, ...rest } = registered;
  if (log === "wal") {
    const what = `The events of ${displayTable(name)} are in the write-ahead log, and nobody can look them up there`;
    throw new RelayError(
      "CONFIG_INVALID",
      `${what}: \`outbox-relay log list\` and \`outbox-relay dlq list\` show the rest`,
    );
  }
  const preset = isManagedOutbox(columns) ? "managed" : log === "table" ? "tail" : null;
  if (preset === null && isOpenOutbox(columns)) return openOutboxEvents(name, pipelines);
  const known = JSON.stringify([columns, log, name, pipelines, rest, target.columns]);
  if (preset === null) return await fromCatalogue(target.database, known, () => outboxEvents(target, name, pipelines));
  const shape = await fromCatalogue(target.database, known, () => readLogShape(target, name, preset));
  return await shapedLogEvents(target.database, shape, pipelines, reached);
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
    unmark: null,
    setAside: null,
    unread: null,
    isSifted: false,
    isParked: true,
  };
}

async function registeredTables(database: Database): Promise<readonly RegisteredTable[]> {
  const { lanes, pipelines } = database.tables;
  const xmin = "pg_snapshot_xmin((l.position ->> 'from')::pg_snapshot)";
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "listing the sources"),
    `select p.source_schema, p.source_table, json_agg(p.name order by p.name),
  (select json_agg(a.attname) from pg_catalog.pg_attribute a
    join pg_catalog.pg_class c on c.oid = a.attrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = p.source_schema and c.relname = p.source_table and a.attnum > 0 and not a.attisdropped),
  (select case when bool_or(l.position ? 'lsn') then 'wal' when bool_or(${isLogPlaceSql("l.position")}) then 'table' end
    from ${lanes} l join ${pipelines} q on q.name = l.pipeline
    where q.source_schema = p.source_schema and q.source_table = p.source_table),
  (select concat(c.oid, ' ', c.xmin, ' ', n.xmin) from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = p.source_schema and c.relname = p.source_table),
  (select case when bool_and(l.position ->> 'from' is not null) then (array_agg(${xmin} order by ${xmin}))[1]::text
      when bool_and(l.position ->> 'after' is not null) then min((l.position ->> 'after')::bigint)::text end
    from ${lanes} l join ${pipelines} q on q.name = l.pipeline
    where q.source_schema = p.source_schema and q.source_table = p.source_table)
from ${pipelines} p group by 1, 2 order by 1, 2`,
  );
  return rows.map(([schema, table, readers, columns, log, version, reached]) => ({
    name: { schema: schema ?? "", table: table ?? "" },
    pipelines: JSON.parse(readers ?? "[]") as readonly string[],
    columns: JSON.parse(columns ?? "[]") as readonly string[],
    log: (log ?? null) as RegisteredTable["log"],
    version: version ?? "",
    reached: reached ?? null,
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
    unmark: shape.unmark,
    setAside: shape.givenUp === null ? shape.markDelivered : null,
    unread: null,
    isSifted: false,
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
    unmark: `${SET_BACK}, delivered_at = null, locked_by = null, locked_at = null`,
    setAside: null,
    unread: null,
    isSifted: false,
    isParked: false,
  };
}
