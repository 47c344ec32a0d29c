import { isRelayError, RelayError, reasonOf } from "../../core/errors.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import type { EventTable } from "../../postgres/event-table.ts";
import { displayTable, quoteArray, type TableName } from "../../postgres/identifiers.ts";
import { isLogPositionSql } from "../../postgres/log-place.ts";
import { isManagedOutbox } from "../../postgres/managed/managed-names.ts";
import type { Database } from "../../postgres/pool.ts";
import { type TableTakers, takersByTable } from "../../postgres/table-takers.ts";
import { statement } from "../../postgres/transaction.ts";
import { readerSql, typeCondition } from "../../postgres/type-condition.ts";
import { parkedShape } from "../../sources/postgres/log/parked-shape.ts";
import { isOpenOutbox, openOutboxShape } from "../../sources/postgres/openoutbox/openoutbox-table.ts";
import { readShape } from "../../sources/postgres/table-discovery.ts";
import type { TableShape } from "../../sources/postgres/table-shape.ts";
import { readLogShape, shapedLogEvents } from "../logs/log-events.ts";
import { operationReadSettings } from "../read-settings.ts";
import type { ShownRules } from "./redact-shown.ts";

export { operationReadSettings } from "../read-settings.ts";

/** Where an operation works: the database, and configured column names. */
export interface OperationTarget {
  readonly database: Database;
  readonly columns: ColumnNames;
  /** What must be hidden of headers and payloads; absent: nothing. */
  readonly shown?: ShownRules;
  /** Template of a link to traces, with {traceId} or {correlationId}. */
  readonly traceUrl?: string | null;
}

/**
 * A table of events as operations see it, whatever its kind. Except for names, fields are SQL fragments over the alias
 * `t`; conditions are never null.
 */
export interface EventSource {
  /** `schema.table`. */
  readonly name: string;
  /** Pipelines that read it now or did before. */
  readonly pipelines: readonly string[];
  readonly table: EventTable;
  /** The column that gives the order of writing. */
  readonly order: string;
  /** Condition for waiting rows, in a form that an index supports. */
  readonly waiting: string;
  readonly delivered: string;
  /** Condition for a row that was given up in the table itself; null where the table cannot say so. */
  readonly givenUp: string | null;
  /**
   * The name of the pipeline whose route matches the row, null where none does. Null for a log, which has no routes
   * between its readers, and while it is unknown what its pipelines read.
   */
  readonly reader: string | null;
  /** The condition that one of these pipelines reads the row, by its routes; null while that is unknown. */
  readonly readBy: ((pipelines: readonly string[]) => string) | null;
  /** When a waiting row may be delivered; null where none is scheduled. */
  readonly scheduledAt: string | null;
  /** Assignments that make a given-up row wait again; null where only the relay's hold says that it was given up. */
  readonly setBack: string | null;
  /** For rows with an earliest claim time: the condition for such rows, and assignments that make them due. */
  readonly dueNow?: { readonly of: string; readonly set: string };
  /** Assignments that make a delivered row wait again; null where the row has no state, as in a log. */
  readonly unmark: string | null;
  /** Assignments that keep a row from being read again; null where a given-up row is never read. */
  readonly setAside: string | null;
  /**
   * Condition for rows of a log that some reader may not have passed yet, in a form that an index supports; null for a
   * queue.
   */
  readonly unread: string | null;
  /** Whether block filters tell which part of the table may contain a key or a correlation id. */
  readonly hasBlockFilters: boolean;
  /** Whether waiting events are copies that are deleted after delivery, as for a log. */
  readonly isParked: boolean;
}

/** A source that cannot be read, with the reason. */
export interface BrokenEventSource {
  readonly source: string;
  readonly reason: string;
}

interface EventSources {
  readonly usable: readonly EventSource[];
  /** A table that cannot be read does not stop reads of the others. */
  readonly broken: readonly BrokenEventSource[];
}

/** The tables that the relay's schema knows, all or the named one. */
export async function eventSources(target: OperationTarget, wanted?: string): Promise<EventSources> {
  const found = await registeredTables(target.database);
  const chosen = found.filter(({ name }) => wanted === undefined || displayTable(name) === wanted);
  const takers = await takersByTable(target.database);
  const usable: EventSource[] = [];
  const broken: BrokenEventSource[] = [];
  for (const table of chosen) {
    const { name } = table;
    try {
      const source = await eventsOf(target, table);
      usable.push({ ...source, ...routesOf(source, takers.get(source.name)) });
    } catch (error) {
      if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
      broken.push({ source: displayTable(name), reason: reasonOf(error) });
    }
  }
  return { usable, broken };
}

/** A row of a queue goes to one of its pipelines, a row of a log to every one whose routes match it. */
function routesOf(
  { pipelines, table, unread }: EventSource,
  known: TableTakers | undefined,
): Pick<EventSource, "reader" | "readBy"> {
  if (known === undefined || known.takers.length === 0 || known.unknown.length > 0) return NO_ROUTES;
  if (unread === null) {
    const reader = readerSql(table, known.takers);
    return { reader, readBy: (meant) => `coalesce(${reader} = any(${quoteArray(meant)}::text[]), false)` };
  }
  const conditions = (meant: readonly string[]) =>
    known.takers
      .filter(({ pipeline }) => meant.includes(pipeline) && pipelines.includes(pipeline))
      .map(({ takes }) => `(${takes === null ? "true" : typeCondition(table, takes, "mine")})`);
  return { reader: null, readBy: (meant) => `(${conditions(meant).join(" or ") || "false"})` };
}

const NO_ROUTES = { reader: null, readBy: null } as const;

interface RegisteredTable {
  readonly name: TableName;
  readonly pipelines: readonly string[];
  readonly columns: readonly string[];
  /** By the form of its readers' positions; null for a queue. */
  readonly log: "table" | "wal" | null;
  /** Changes with the columns or rights of the table. */
  readonly version: string;
  /** For a log: what every lane has passed, as a transaction or a position; null when a lane has not started. */
  readonly reached: string | null;
}

async function eventsOf(target: OperationTarget, registered: RegisteredTable): Promise<EventSource> {
  const { columns, log, name, pipelines, reached, ...rest } = registered;
  if (log === "wal") {
    const what = `The events of ${displayTable(name)} are in the write-ahead log, where they cannot be looked up`;
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
    ...NO_ROUTES,
    scheduledAt: null,
    setBack: null,
    unmark: null,
    setAside: null,
    unread: null,
    hasBlockFilters: false,
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
  (select case when bool_or(l.position ? 'lsn') then 'wal' when bool_or(${isLogPositionSql("l.position")}) then 'table' end
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
  return eventsOfQueue(await readShape(database, name, columns), pipelines);
}

function eventsOfQueue(shape: TableShape, pipelines: readonly string[]): EventSource {
  return {
    name: displayTable(shape.name),
    pipelines,
    table: shape,
    order: shape.order.column,
    waiting: shape.main,
    delivered: shape.delivered,
    givenUp: shape.givenUp,
    ...NO_ROUTES,
    scheduledAt: shape.scheduledAt,
    setBack: shape.setBack,
    unmark: shape.unmark,
    setAside: shape.givenUp === null ? shape.markDelivered : null,
    unread: null,
    hasBlockFilters: false,
    isParked: false,
  };
}

function openOutboxEvents(name: TableName, pipelines: readonly string[]): EventSource {
  return {
    ...eventsOfQueue(openOutboxShape(name), pipelines),
    order: "t.created_at",
    waiting: "t.status in ('PENDING', 'DELIVERING')",
    dueNow: { of: "t.status = 'PENDING'", set: "available_at = now(), updated_at = now()" },
  };
}

/** Operators look at the same tables repeatedly, and their catalogue entries hardly ever change. */
const KEPT_MS = 10_000;
const KEPT_MAX = 1_000;

const all = new WeakMap<object, Map<string, { readonly untilMs: number; readonly value: unknown }>>();

/** Caches a value from the catalogue briefly. Its name must contain everything that the value depends on. */
async function fromCatalogue<Value>({ pool }: Database, name: string, find: () => Promise<Value>): Promise<Value> {
  const known = all.get(pool) ?? new Map();
  all.set(pool, known);
  const before = known.get(name);
  if (before !== undefined && before.untilMs > performance.now()) return before.value as Value;
  const value = await find();
  if (known.size >= KEPT_MAX) known.clear();
  known.set(name, { untilMs: performance.now() + KEPT_MS, value });
  return value;
}
