import type { QueueSource } from "../../ports/queue-store.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import { displayTable, parseTableName, type TableName } from "../../postgres/identifiers.ts";
import { MANAGED_COLUMNS, type ManagedFinding } from "../../postgres/managed/managed-names.ts";
import { pruneManaged } from "../../postgres/managed/managed-retention.ts";
import { type Database, type DatabaseOptions, databaseOf } from "../../postgres/pool.ts";
import { MESSAGE_SCHEMA } from "./log/log-preset.ts";
import { logSource } from "./log/log-source.ts";
import { tailKind } from "./tail/tail-kind.ts";
import { walKind } from "./wal/wal-kind.ts";

export interface LogOptions {
  /** An open database, which the caller closes, or the options to open one. */
  readonly database: Database | DatabaseOptions;
  /** `schema.table`. */
  readonly table: string | TableName;
  /** Names a reader where there are several: each has its own progress. Part of the pipeline's name. */
  readonly subscriber?: string | null;
  /** Where to begin at the first start. Default: `beginning`. */
  readonly start?: "beginning" | "now" | Date;
}

/** Options of `managedOutboxSource`. */
export interface ManagedOutboxOptions extends LogOptions {
  /** How long a lagging subscriber can keep rows beyond the retention; forever by default. */
  readonly lagMaxMs?: number | null;
  /** Called with findings of the retention that an operator should know. */
  readonly onFinding?: (finding: ManagedFinding) => void;
}

/** Options of `eventTableSource`. */
export interface EventTableOptions extends LogOptions {
  readonly columns?: ColumnNames;
}

/** Options of `walSource`. */
export interface WalSourceOptions extends Omit<LogOptions, "table"> {
  /** The table whose inserts are events, or the prefix of the messages that are. */
  readonly table: string | TableName | { readonly messages: string };
  readonly columns?: ColumnNames;
  /** `debezium`: an outbox table in the format of Debezium's outbox event router. */
  readonly preset?: "plain" | "debezium";
  /** More columns to send as headers: `column` or `column:header`. */
  readonly headerColumns?: readonly string[];
  /** A replication slot of its own by default. An existing slot is read on from where its former reader stopped. */
  readonly slot?: string;
  readonly publication?: string;
}

/** The outbox that `migrate` or `managedTableSql` creates: append-only, partitioned, read by position. */
export function managedOutboxSource(options: ManagedOutboxOptions): QueueSource {
  const { lagMaxMs = null, onFinding } = options;
  const { close, database, name, table } = opened(options, nameOf(options.table));
  const prune = async (olderThanMs: number) => {
    const { deleted, dropped, findings } = await pruneManaged(database, table, { olderThanMs, lagMaxMs });
    for (const finding of findings) onFinding?.(finding);
    return deleted + dropped;
  };
  const own = { database, reference: table, columns: MANAGED_COLUMNS, start: startOf(options), prune };
  return logSource({ database, name, table, close, hasWakeUp: true, kind: (spec) => tailKind({ ...own, spec }) });
}

/** An existing append-only table of events. The relay only reads it. */
export function eventTableSource(options: EventTableOptions): QueueSource {
  const { columns = {} } = options;
  const { close, database, name, table } = opened(options, nameOf(options.table));
  const xid = columns.xid == null ? {} : { xidColumn: columns.xid };
  const own = { database, reference: table, columns, start: startOf(options), ...xid };
  return logSource({ database, name, table, close, kind: (spec) => tailKind({ ...own, spec }) });
}

/** Inserted rows, or messages, read from the server's write-ahead log. */
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
  const name = subscriber === null ? displayTable(table) : `${displayTable(table)}@${subscriber}`;
  return { ...databaseOf(given), name, table };
}
