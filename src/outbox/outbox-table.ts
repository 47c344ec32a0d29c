import { RelayError } from "../core/errors.ts";
import { ColumnFinder } from "../postgres/column-finder.ts";
import {
  CANDIDATES,
  type ColumnInfo,
  type ColumnNames,
  FLAG_CANDIDATES,
  isBoolean,
  isInteger,
  isJson,
  isText,
  isTimestamp,
} from "../postgres/column-names.ts";
import {
  catalogOperator,
  displayTable,
  parseTableName,
  quoteIdentifier,
  quoteTable,
  type TableName,
} from "../postgres/identifiers.ts";
import { isManagedOutbox, MANAGED_COLUMNS } from "../postgres/managed/managed-names.ts";

/** A column of an outbox table. */
export interface TableColumn extends ColumnInfo {
  readonly isRequired: boolean;
  readonly isGenerated: boolean;
  readonly hasDefault: boolean;
}

/** What the catalogue contains on a table. */
export interface TableFacts {
  readonly role: string;
  readonly mayUse: boolean;
  readonly mayInsert: boolean;
  /** Columns with a unique index on that column alone. */
  readonly unique: readonly string[];
  /** Columns with such an index in every partition. */
  readonly uniqueInParts: readonly string[];
  readonly columns: readonly TableColumn[];
}

/** Where each part of an event is stored. Null: the table has no column for it. */
export interface OutboxTable {
  readonly name: TableName;
  readonly columns: ReadonlyMap<string, TableColumn>;
  readonly id: TableColumn;
  /** The insert's clause for an id that exists already. */
  readonly conflict: string;
  /** Null where only the intent contains it. */
  readonly type: TableColumn | null;
  readonly key: TableColumn | null;
  readonly payload: TableColumn;
  /** The column that contains the type, without a type column. May equal the payload's. */
  readonly intent: TableColumn | null;
  readonly headers: TableColumn | null;
  readonly correlationId: TableColumn | null;
  readonly traceparent: TableColumn | null;
  readonly tracestate: TableColumn | null;
  /** Columns with the same SQL for every row. */
  readonly fixed: ReadonlyMap<string, string>;
}

/**
 * Pure. Throws GRANT_MISSING, COLUMN_MISSING or COLUMN_MISTYPED before a statement could fail and abort the
 * transaction.
 */
export function outboxTableOf(name: TableName, facts: TableFacts, given: ColumnNames): OutboxTable {
  requireGrants(name, facts);
  const isManaged = isManagedOutbox(facts.columns.map((column) => column.name));
  const names = isManaged ? { ...MANAGED_COLUMNS, ...given } : given;
  const columns = new Map(facts.columns.map((column) => [column.name, column]));
  const finder = new ColumnFinder(name, facts.columns);
  const find = (role: keyof typeof CANDIDATES, fits?: (column: ColumnInfo) => boolean): TableColumn | null => {
    const named = role in names ? names[role as keyof ColumnNames] : undefined;
    const wanted = { role: `the ${role}`, named: named as string | null | undefined, candidates: CANDIDATES[role] };
    const found = finder.find(fits === undefined ? wanted : { ...wanted, fits, type: "another type" });
    return found === null ? null : (columns.get(found.name) ?? null);
  };
  const id = find("id");
  if (id === null) throw finder.missing("the event's id", CANDIDATES.id);
  const type = find("type");
  const intent = find("intent");
  const payload = find("payload") ?? intent;
  if (type === null && intent === null) throw finder.missing("the type", CANDIDATES.type);
  const isTypeAlone = type === null && payload === intent && !(intent !== null && isJson(intent));
  if (payload === null || isTypeAlone) throw finder.missing("the payload", CANDIDATES.payload);
  return {
    name,
    columns,
    id,
    conflict: conflictOf(name, facts, id),
    type,
    key: find("key"),
    payload,
    intent: type === null ? intent : null,
    headers: find("headers", isJson),
    correlationId: find("correlationId"),
    traceparent: find("traceparent", isText),
    tracestate: find("tracestate", isText),
    fixed: fixedColumns(facts.columns, find("createdAt", isTimestamp), statusOf(facts, find)),
  };
}

type Find = (role: "status" | "nextAttemptAt", fits: (column: ColumnInfo) => boolean) => TableColumn | null;

/** As the source reads it: beside plain flags, a status column belongs to the application. */
function statusOf({ columns }: TableFacts, find: Find): TableColumn | null {
  const hasFlags = columns.some(({ name }) => FLAGS.has(name));
  return hasFlags && find("nextAttemptAt", isTimestamp) === null ? null : find("status", isText);
}

function requireGrants(name: TableName, { role, mayUse, mayInsert }: TableFacts): void {
  const lacking = [
    mayUse ? null : `USAGE on schema ${name.schema}`,
    mayInsert ? null : `INSERT on ${quoteTable(name)}`,
  ].filter((grant) => grant !== null);
  if (lacking.length === 0) return;
  throw new RelayError("GRANT_MISSING", `The role ${role} lacks ${lacking.join(", ")}`);
}

/**
 * Without a unique index an event could be written twice. An id that the database generates is always new. A table
 * partitioned by time has the index per partition, so it cannot be named in the clause.
 */
function conflictOf(name: TableName, { unique, uniqueInParts }: TableFacts, id: TableColumn): string {
  if (id.isSequence) return "";
  if (unique.includes(id.name)) return `on conflict (${quoteIdentifier(id.name)}) do nothing`;
  if (uniqueInParts.includes(id.name)) return "on conflict do nothing";
  const index = `create unique index on ${quoteTable(name)} (${quoteIdentifier(id.name)})`;
  const what = `${displayTable(name)} has no unique index on ${id.name} alone, so an event could be written twice: ${index}`;
  throw new RelayError("COLUMN_MISSING", what);
}

/** The row's ordinal within the statement. */
export const ROW_PLACE = 'e."#"';
const NOW = "pg_catalog.statement_timestamp()";
const ROW_DELAY = `(${ROW_PLACE} ${catalogOperator("*")} interval '1 microsecond')`;
const ROW_TIME = `${NOW} ${catalogOperator("+")} ${ROW_DELAY}`;

/**
 * The time is set explicitly: `now()` is the start of the transaction, which can contradict the order of locks, and
 * rows of one statement must differ. Inserting a row takes longer than the microsecond between them.
 */
function fixedColumns(
  columns: readonly TableColumn[],
  createdAt: TableColumn | null,
  status: TableColumn | null,
): ReadonlyMap<string, string> {
  const names = new Set(columns.map(({ name }) => name));
  const pending = names.has("locked_by") && names.has("available_at") ? "'PENDING'" : "'Pending'";
  const initialOf = (column: TableColumn): string | undefined => {
    if (column === createdAt) return inColumn(column, ROW_TIME);
    if (column.hasDefault) return undefined;
    return column === status ? pending : initialValue(column);
  };
  return new Map(
    columns.flatMap((column): [string, string][] => {
      const initial = column.isGenerated ? undefined : initialOf(column);
      return initial === undefined ? [] : [[column.name, initial]];
    }),
  );
}

/** A timestamp without time zone stores UTC. */
function inColumn({ baseType }: TableColumn, time: string): string {
  return baseType === "timestamp with time zone" ? time : `(${time}) at time zone 'UTC'`;
}

const COUNTERS: ReadonlySet<string> = new Set(CANDIDATES.attempts);
const FLAGS: ReadonlySet<string> = new Set(FLAG_CANDIDATES);
const TIMES: ReadonlySet<string> = new Set(["available_at", "updated_at", ...CANDIDATES.nextAttemptAt]);

/** The initial state of a row in columns that are required and have no default. */
function initialValue(column: TableColumn): string | undefined {
  if (!column.isRequired) return undefined;
  if (COUNTERS.has(column.name) && isInteger(column)) return "0";
  if (FLAGS.has(column.name) && isBoolean(column)) return "false";
  return TIMES.has(column.name) && isTimestamp(column) ? inColumn(column, NOW) : undefined;
}

export interface OutboxTableOptions {
  /** `json` keeps the text as written and can be queried; `bytea` stores any bytes. */
  readonly payload?: "json" | "bytea";
}

/**
 * SQL of a table to start with: a sequence for the order, a primary key for unique ids, a flag with a time, and an
 * index of waiting events. For a migration of the application; running it twice changes nothing.
 */
export function outboxTableSql(table: string, { payload = "json" }: OutboxTableOptions = {}): string {
  const name = parseTableName(table);
  const quoted = quoteTable(name);
  return `create schema if not exists ${quoteIdentifier(name.schema)};
create table if not exists ${quoted} (
  position bigint generated always as identity,
  id uuid primary key,
  event_type text not null,
  aggregate_id text,
  payload ${payload} not null,
  headers jsonb,
  correlation_id text,
  created_at timestamptz not null default pg_catalog.clock_timestamp(),
  published_at timestamptz
);
create index if not exists ${quoteIdentifier(`${name.table}_waiting`.slice(0, 63))}
  on ${quoted} (position) where published_at is null;
`;
}
