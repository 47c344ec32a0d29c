import type { PipelineSpec, QueueSource } from "../ports/queue-store.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import type { TableName } from "../postgres/identifiers.ts";
import { MANAGED_COLUMNS, type ManagedFinding } from "../postgres/managed/managed-names.ts";
import type { Database } from "../postgres/pool.ts";
import { type LogPreset, MESSAGE_SCHEMA } from "../sources/postgres/log/log-preset.ts";
import {
  eventTableSource,
  managedOutboxSource,
  type WalSourceOptions,
  walSource,
} from "../sources/postgres/log-sources.ts";
import { tailKind } from "../sources/postgres/tail/tail-kind.ts";
import type { OperationTarget } from "./event-source.ts";
import type { KnownPipeline } from "./pipelines.ts";

/** A log as one subscriber reads it. */
interface LogReader {
  readonly database: Database;
  /** Null where it has none of its own name. */
  readonly subscriber: string | null;
  /** Of messages in the write-ahead log: `message` and their prefix. */
  readonly table: TableName;
  readonly preset: LogPreset;
  readonly columns: ColumnNames;
  /** Of the write-ahead log alone. */
  readonly wal?: Pick<WalSourceOptions, "headerColumns" | "preset" | "publication" | "slot">;
  readonly start: "beginning" | "now" | Date;
  /** How long a subscriber that lags behind keeps the log from being pruned; null for ever. */
  readonly lagMaxMs: number | null;
  /** Told what a person should know of a log that is pruned. */
  readonly tell?: (finding: ManagedFinding) => void;
}

/** Whoever only looks at a pipeline, and neither begins nor prunes. */
export function readerOf(
  { columns, database }: OperationTarget,
  { log, schema, subscriber, table }: KnownPipeline,
): LogReader {
  const looks = { start: "now", lagMaxMs: null } as const;
  return { database, subscriber, table: { schema, table }, preset: log ?? "tail", columns, ...looks };
}

export function openLogSource(reader: LogReader): QueueSource {
  const { columns, database, lagMaxMs, preset, start, subscriber, table, tell, wal } = reader;
  const own = { database, table, subscriber, start };
  if (preset === "tail") return eventTableSource({ ...own, columns });
  if (preset === "managed") return managedOutboxSource({ ...own, lagMaxMs, ...(tell ? { onFinding: tell } : {}) });
  const what = table.schema === MESSAGE_SCHEMA ? { messages: table.table } : table;
  return walSource({ ...own, ...wal, table: what, columns });
}

/** Of a log that is a table, for whoever only asks it something. */
export function tailOf({ columns, database, preset, start, table }: LogReader, spec: PipelineSpec) {
  const names = columnsOf(preset, columns);
  const xid = names.xid == null ? {} : { xidColumn: names.xid };
  const from = start instanceof Date ? { at: start } : start;
  return tailKind({ database, reference: table, columns: names, ...xid, spec, start: from });
}

/** What the settings say of columns is said of other tables. */
export function columnsOf(preset: LogPreset, columns: ColumnNames): ColumnNames {
  return preset === "managed" ? MANAGED_COLUMNS : columns;
}
