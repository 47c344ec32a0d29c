import { RelayError } from "../../core/errors.ts";
import type { ColumnNames } from "../column-names.ts";
import { displayTable, type TableName } from "../identifiers.ts";

/** How much time one partition holds. Cut in UTC; a week begins on Monday. */
export type PartitionStep = "1 hour" | "1 day" | "1 week" | "1 month";

export const PARTITION_STEPS: readonly PartitionStep[] = ["1 hour", "1 day", "1 week", "1 month"];

const DAY_MS = 86_400_000;

/** Three partitions beside the present one: upkeep has that long to come by. */
export const AHEAD_MS: Readonly<Record<PartitionStep, number>> = {
  "1 hour": DAY_MS / 8,
  "1 day": 3 * DAY_MS,
  "1 week": 21 * DAY_MS,
  "1 month": 93 * DAY_MS,
};

export interface ManagedTable {
  readonly table: TableName;
  /** `text` for JSON and other texts, `bytea` for any bytes. */
  readonly payload: "text" | "bytea";
  readonly partition: PartitionStep;
  /** A trigger that wakes an idle relay. It costs the writers a little. */
  readonly wakeUp: boolean;
}

/** Which columns are what: `id` is the order here, not the event's id. */
export const MANAGED_COLUMNS: ColumnNames = { id: "event_id", key: "event_key", order: "id" };

/** Wrong or worth knowing, with what to do about it. */
export interface ManagedFinding {
  readonly severity: "error" | "warning";
  readonly what: string;
  readonly fix: string;
}

/** The lane of a row `t`, as the source reckons it: by the key, or by the id of an event without one. */
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

/** By its columns, since a comment may be lost in a dump. Further ones may stand beside them. */
export function isManagedOutbox(columns: readonly string[]): boolean {
  return COLUMNS.every((column) => columns.includes(column));
}

/** The same by SQL, for a table whose oid is given. A fragment. */
export function isManagedSql(oid: string): string {
  const names = COLUMNS.map((column) => `'${column}'`).join(", ");
  return `(select count(*) = ${COLUMNS.length} from pg_catalog.pg_attribute a
    where a.attrelid = ${oid} and a.attnum > 0 and not a.attisdropped and a.attname in (${names}))`;
}

/** `_p2026111603`: the longest of what is appended to the table's name. */
const SUFFIX_BYTES_MAX = 12;
const NAME_BYTES_MAX = 63 - SUFFIX_BYTES_MAX;

/** What belongs to the table, by its unquoted name in the same schema. */
export function managedNames(table: TableName) {
  if (Buffer.byteLength(table.table) > NAME_BYTES_MAX) {
    const what = `The managed outbox ${displayTable(table)} needs a shorter name: its partitions have names of their own`;
    throw new RelayError("CONFIG_INVALID", `${what}, so ${NAME_BYTES_MAX} bytes are the most`);
  }
  return {
    defaultPartition: `${table.table}_default`,
    partitionPrefix: `${table.table}_p`,
    publish: `${table.table}_publish`,
    ring: `${table.table}_ring`,
    sieve: `${table.table}_sieve`,
  };
}

/** Whoever creates partitions or drops them does so alone. A text for an advisory lock. */
export function upkeepLock(table: TableName): string {
  return `outbox-relay upkeep of ${displayTable(table)}`;
}

/** The first number of the doorbell's advisory lock; the second is the table's oid. */
export const DOORBELL_LOCK = 1_330_401_108;

/** Marks the table as ours, and keeps what cannot be read from it otherwise. */
export function managedComment(partition: PartitionStep): string {
  return `outbox-relay: managed outbox, version 1, one partition per ${partition}`;
}

/** Null where the comment was lost or is somebody else's. */
export function stepOfComment(comment: string | null): PartitionStep | null {
  const step = /^outbox-relay: managed outbox, version \d+, one partition per (.+)$/.exec(comment ?? "")?.[1];
  return PARTITION_STEPS.find((known) => known === step) ?? null;
}
