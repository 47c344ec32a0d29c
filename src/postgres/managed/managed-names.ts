import { RelayError } from "../../core/errors.ts";
import type { ColumnNames } from "../column-names.ts";
import { displayTable, type TableName } from "../identifiers.ts";

/** The time range of one partition, in UTC; a week begins on Monday. */
export type PartitionStep = "1 hour" | "1 day" | "1 week" | "1 month";

/** All steps, the shortest first. */
export const PARTITION_STEPS: readonly PartitionStep[] = ["1 hour", "1 day", "1 week", "1 month"];

const DAY_MS = 86_400_000;

/** Three partitions ahead of the current one: upkeep may be late by that long. */
export const AHEAD_MS: Readonly<Record<PartitionStep, number>> = {
  "1 hour": DAY_MS / 8,
  "1 day": 3 * DAY_MS,
  "1 week": 21 * DAY_MS,
  "1 month": 93 * DAY_MS,
};

/** How to create a managed outbox. */
export interface ManagedTable {
  readonly table: TableName;
  /** `text` for JSON and other texts, `bytea` for any bytes. */
  readonly payload: "text" | "bytea";
  readonly partition: PartitionStep;
  /** A trigger that wakes an idle relay. It costs writers a little. */
  readonly wakeUp: boolean;
}

/** The roles of the columns: `id` is the order here, not the event's id. */
export const MANAGED_COLUMNS: ColumnNames = { id: "event_id", key: "event_key", order: "id" };

/** A fault or a notable fact, with what to do about it. */
export interface ManagedFinding {
  readonly severity: "error" | "warning";
  readonly what: string;
  readonly fix: string;
}

/** The lane of a row `t`, computed as the source does: from the key, or from the id of an event without a key. */
export function managedLaneSql(lanes: number): string {
  if (lanes === 1) return "0";
  const hash = `hashtextextended(coalesce(t."event_key"::text, t."event_id"::text) collate "C", 0)`;
  return `mod(${hash} & 9223372036854775807, ${lanes})`;
}

const COLUMNS = [
  "id",
  "xid",
  "event_id",
  "event_type",
  "event_key",
  "payload",
  "headers",
  "correlation_id",
  "traceparent",
  "tracestate",
  "created_at",
] as const;

/** Recognized by its columns, since a dump may lose comments. Further columns are allowed. */
export function isManagedOutbox(columns: readonly string[]): boolean {
  return COLUMNS.every((column) => columns.includes(column));
}

/** The same in SQL, for a table given by its oid. A fragment. */
export function isManagedSql(oid: string): string {
  const names = COLUMNS.map((column) => `'${column}'`).join(", ");
  return `(select count(*) = ${COLUMNS.length} from pg_catalog.pg_attribute a
    where a.attrelid = ${oid} and a.attnum > 0 and not a.attisdropped and a.attname in (${names}))`;
}

/** `_p2026111603`: the longest suffix of the table's name. */
const SUFFIX_BYTES_MAX = 12;
const NAME_BYTES_MAX = 63 - SUFFIX_BYTES_MAX;

/** The objects that belong to the table, by their unquoted names in the same schema. */
export function managedNames(table: TableName) {
  if (Buffer.byteLength(table.table) > NAME_BYTES_MAX) {
    const what = `The managed outbox ${displayTable(table)} needs a shorter name, because its partitions add a suffix`;
    throw new RelayError("CONFIG_INVALID", `${what}: at most ${NAME_BYTES_MAX} bytes`);
  }
  return {
    defaultPartition: `${table.table}_default`,
    partitionPrefix: `${table.table}_p`,
    publish: `${table.table}_publish`,
    ring: `${table.table}_ring`,
    blockFilter: `${table.table}_sieve`,
  };
}

/** Serializes the creating and dropping of partitions. A text for an advisory lock. */
export function upkeepLock(table: TableName): string {
  return `outbox-relay upkeep of ${displayTable(table)}`;
}

/** The first number of the wake-up's advisory lock; the second is the table's oid. */
export const WAKE_UP_LOCK = 1_330_401_108;

/** Marks the table as a managed outbox, and stores what its catalog does not. */
export function managedComment(partition: PartitionStep): string {
  return `outbox-relay: managed outbox, version 1, one partition per ${partition}`;
}

/** Null where the comment was lost or changed. */
export function stepOfComment(comment: string | null): PartitionStep | null {
  const step = /^outbox-relay: managed outbox, version \d+, one partition per (.+)$/.exec(comment ?? "")?.[1];
  return PARTITION_STEPS.find((known) => known === step) ?? null;
}
