import type { PipelineSpec, QueueSource } from "../ports/queue-store.ts";
import type { ColumnNames } from "../postgres/column-names.ts";
import type { TableName } from "../postgres/identifiers.ts";
import { MANAGED_COLUMNS, type ManagedFinding } from "../postgres/managed/managed-names.ts";
import { pruneManaged } from "../postgres/managed/managed-retention.ts";
import type { Database } from "../postgres/pool.ts";
import type { LogKind } from "../sources/postgres/log/log-kind.ts";
import { type LogPreset, MESSAGE_SCHEMA } from "../sources/postgres/log/log-preset.ts";
import { logSource } from "../sources/postgres/log/log-source.ts";
import type { Difference } from "../sources/postgres/tail/difference.ts";
import { tailKind } from "../sources/postgres/tail/tail-kind.ts";
import { walKind } from "../sources/postgres/wal/wal-kind.ts";
import type { OperationTarget } from "./event-source.ts";
import type { KnownPipeline } from "./pipelines.ts";

/** A log as one subscriber reads it. */
interface LogReader {
  readonly database: Database;
  /** `schema.table`, with `@subscriber` behind it where it has one. */
  readonly name: string;
  /** Of messages in the write-ahead log: `message` and their prefix. */
  readonly table: TableName;
  readonly preset: LogPreset;
  readonly columns: ColumnNames;
  readonly isDebezium: boolean;
  readonly start: "beginning" | "now" | Date;
  /** How long a subscriber that lags behind keeps the log from being pruned; null for ever. */
  readonly lagMaxMs: number | null;
  /** Told what a person should know of a log that is pruned. */
  readonly tell?: (finding: ManagedFinding) => void;
}

/** Whoever only looks at a pipeline, and neither begins nor prunes. */
export function readerOf(
  { columns, database }: OperationTarget,
  { log, pipeline, schema, table }: KnownPipeline,
): LogReader {
  const name = pipeline.slice(0, pipeline.lastIndexOf("->"));
  const looks = { isDebezium: false, start: "now", lagMaxMs: null } as const;
  return { database, name, table: { schema, table }, preset: log ?? "tail", columns, ...looks };
}

export function openLogSource(reader: LogReader): QueueSource {
  const { database, name, preset, table } = reader;
  return preset === "wal"
    ? logSource({ database, name, table, kind: (spec) => walKind(walOptions(reader, spec)) })
    : logSource({
        ...{ database, name, table, hasDoorbell: preset === "managed" },
        kind: (spec) => tailOf(reader, spec),
      });
}

/** Of a log that is a table. */
export function tailOf(reader: LogReader, spec: PipelineSpec): LogKind<Difference> {
  const { columns, database, lagMaxMs, preset, start, table, tell } = reader;
  const isManaged = preset === "managed";
  const prune = async (olderThanMs: number) => {
    const { deleted, dropped, findings } = await pruneManaged(database, table, { olderThanMs, lagMaxMs });
    for (const finding of findings) tell?.(finding);
    return deleted + dropped;
  };
  return tailKind({
    database,
    reference: table,
    columns: columnsOf(preset, columns),
    ...(isManaged || columns.xid == null ? {} : { xidColumn: columns.xid }),
    spec,
    start: start instanceof Date ? { at: start } : start,
    ...(isManaged ? { prune } : {}),
  });
}

/** What the settings say of columns is said of other tables. */
export function columnsOf(preset: LogPreset, columns: ColumnNames): ColumnNames {
  return preset === "managed" ? MANAGED_COLUMNS : columns;
}

function walOptions({ columns, database, isDebezium, start, table }: LogReader, spec: PipelineSpec) {
  const isMessage = table.schema === MESSAGE_SCHEMA;
  return {
    database,
    table: isMessage ? null : table,
    messages: isMessage ? { prefix: table.table } : null,
    columns,
    preset: isDebezium ? ("debezium" as const) : ("plain" as const),
    spec,
    start,
  };
}
