import type { PipelineSpec, QueueSource } from "../../ports/queue-store.ts";
import type { ColumnNames } from "../../postgres/column-names.ts";
import type { TableName } from "../../postgres/identifiers.ts";
import { MANAGED_COLUMNS, type ManagedFinding } from "../../postgres/managed/managed-names.ts";
import type { Database } from "../../postgres/pool.ts";
import { type LogPreset, MESSAGE_SCHEMA } from "../../sources/postgres/log/log-preset.ts";
import {
  eventTableSource,
  managedOutboxSource,
  type WalSourceOptions,
  walSource,
} from "../../sources/postgres/log-sources.ts";
import { tailKind } from "../../sources/postgres/tail/tail-kind.ts";
import type { OperationTarget } from "../events/event-source.ts";
import type { KnownPipeline } from "../pipelines/pipelines.ts";

/** A log as one subscriber reads it. */
interface LogReader {
  readonly database: Database;
  /** Null for the one reader without a subscriber name. */
  readonly subscriber: string | null;
  /** For messages in the write-ahead log: `message` and their prefix. */
  readonly table: TableName;
  readonly preset: LogPreset;
  readonly columns: ColumnNames;
  /** For the write-ahead log only. */
  readonly wal?: Pick<WalSourceOptions, "headerColumns" | "preset" | "publication" | "slot">;
  readonly start: "beginning" | "now" | Date;
  /** How long a subscriber that lags behind blocks the pruning of the log; null for ever. */
  readonly lagMaxMs: number | null;
  /** Called with what an operator should know of a log that is pruned. */
  readonly onFinding?: (finding: ManagedFinding) => void;
}

/** A reader that only inspects a pipeline: it neither starts nor prunes it. */
export function readerOf(
  { columns, database }: OperationTarget,
  { log, schema, subscriber, table }: KnownPipeline,
): LogReader {
  const looks = { start: "now", lagMaxMs: null } as const;
  return { database, subscriber, table: { schema, table }, preset: log ?? "tail", columns, ...looks };
}

/** Opens the source of a log. */
export function openLogSource(reader: LogReader): QueueSource {
  const { columns, database, lagMaxMs, preset, start, subscriber, table, onFinding, wal } = reader;
  const own = { database, table, subscriber, start };
  if (preset === "tail") return eventTableSource({ ...own, columns });
  if (preset === "managed") return managedOutboxSource({ ...own, lagMaxMs, ...(onFinding ? { onFinding } : {}) });
  const what = table.schema === MESSAGE_SCHEMA ? { messages: table.table } : table;
  return walSource({ ...own, ...wal, table: what, columns });
}

/** The log's table, for reads that do not consume it. */
export function tailOf({ columns, database, preset, start, table }: LogReader, spec: PipelineSpec) {
  const names = columnsOf(preset, columns);
  const xid = names.xid == null ? {} : { xidColumn: names.xid };
  const from = start instanceof Date ? { at: start } : start;
  return tailKind({ database, reference: table, columns: names, ...xid, spec, start: from });
}

/** Configured column names apply to application tables only; a managed outbox has its own. */
export function columnsOf(preset: LogPreset, columns: ColumnNames): ColumnNames {
  return preset === "managed" ? MANAGED_COLUMNS : columns;
}
