import type { QueueSource } from "../../ports/queue-store.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import { displayTable, parseTableName, type TableName } from "../../postgres/identifiers.ts";
import { MANAGED_COLUMNS, type ManagedFinding } from "../../postgres/managed/managed-names.ts";
import { pruneManaged } from "../../postgres/managed/managed-retention.ts";
import { type Database, type DatabaseOptions, openDatabase } from "../../postgres/pool.ts";
import { MESSAGE_SCHEMA } from "./log/log-preset.ts";
import { logSource } from "./log/log-source.ts";
import { tailKind } from "./tail/tail-kind.ts";
import { walKind } from "./wal/wal-kind.ts";

interface LogOptions {
  /** An open database, which stays the caller's to close, or how to open one. */
  readonly database: Database | DatabaseOptions;
  /** `schema.table`. */
  readonly table: string | TableName;
  /** Who reads it, where several do: each has progress of its own. Part of the pipeline's name. */
  readonly subscriber?: string | null;
  /** Where it begins if it never was there before. `beginning` by default. */
  readonly start?: "beginning" | "now" | Date;
}

export interface ManagedOutboxOptions extends LogOptions {
  /** How long a subscriber that lags behind keeps the log beyond its retention; for ever by default. */
  readonly lagMaxMs?: number | null;
  /** Told what a person should know of a log that is pruned. */
  readonly onFinding?: (finding: ManagedFinding) => void;
}

export interface EventTableOptions extends LogOptions {
  readonly columns?: ColumnNames;
}

export interface WalSourceOptions extends Omit<LogOptions, "table"> {
  /** Whose inserts are events, or the prefix of messages that are. */
  readonly table: string | TableName | { readonly messages: string };
  readonly columns?: ColumnNames;
  /** `debezium`: an outbox table as Debezium's outbox router has it. */
  readonly preset?: "plain" | "debezium";
  /** More columns that travel as headers: `column` or `column:header`. */
  readonly headerColumns?: readonly string[];
  /** Of one's own by default. One that is there already is read on from where its former reader came. */
  readonly slot?: string;
  readonly publication?: string;
}

/** The outbox that `migrate` or `managedTableSql` makes: append-only, in partitions, read by position. */
export function managedOutboxSource(options: ManagedOutboxOptions): QueueSource {
  const { lagMaxMs = null, onFinding } = options;
  const { close, database, name, table } = opened(options, nameOf(options.table));
  const prune = async (olderThanMs: number) => {
    const { deleted, dropped, findings } = await pruneManaged(database, table, { olderThanMs, lagMaxMs });
    for (const finding of findings) onFinding?.(finding);
    return deleted + dropped;
  };
  const own = { database, reference: table, columns: MANAGED_COLUMNS, start: startOf(options), prune };
  return logSource({ database, name, table, close, hasDoorbell: true, kind: (spec) => tailKind({ ...own, spec }) });
}

/** An existing append-only table of events. It is only read. */
export function eventTableSource(options: EventTableOptions): QueueSource {
  const { columns = {} } = options;
  const { close, database, name, table } = opened(options, nameOf(options.table));
  const xid = columns.xid == null ? {} : { xidColumn: columns.xid };
  const own = { database, reference: table, columns, start: startOf(options), ...xid };
  return logSource({ database, name, table, close, kind: (spec) => tailKind({ ...own, spec }) });
}

/** Rows as they are inserted, or messages, out of the server's write-ahead log. */
export function walSource({ table: wanted, ...options }: WalSourceOptions): QueueSource {
  const { columns = {}, headerColumns, preset = "plain", publication, slot, start = "beginning" } = options;
  const prefix = typeof wanted === "object" && "messages" in wanted ? wanted.messages : null;
  const named = prefix === null ? nameOf(wanted as string | TableName) : { schema: MESSAGE_SCHEMA, table: prefix };
  const { close, database, name, table } = opened(options, named);
  const own = {
    database,
    ...(prefix === null ? { table, messages: null } : { table: null, messages: { prefix } }),
    ...{ columns, preset, start },
    ...(headerColumns === undefined ? {} : { headerColumns }),
    ...(slot === undefined ? {} : { slot }),
    ...(publication === undefined ? {} : { publication }),
  };
  return logSource({ database, name, table, close, kind: (spec) => walKind({ ...own, spec }) });
}

const startOf = ({ start = "beginning" }: LogOptions) => (start instanceof Date ? { at: start } : start);

const nameOf = (table: string | TableName) => (typeof table === "string" ? parseTableName(table) : table);

function opened({ database: given, subscriber = null }: Pick<LogOptions, "database" | "subscriber">, table: TableName) {
  const isBorrowed = "pool" in given;
  const database = isBorrowed ? given : openDatabase(given);
  const name = subscriber === null ? displayTable(table) : `${displayTable(table)}@${subscriber}`;
  return { database, name, table, close: isBorrowed ? async () => {} : () => database.close() };
}
