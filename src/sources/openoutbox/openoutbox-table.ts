import type { TypeFilter } from "../../ports/queue-store.ts";
import type { EventTable } from "../../postgres/event-table.ts";
import { quoteLiteral, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import { typeCondition } from "../../postgres/type-condition.ts";

export const DEFAULT_TABLE: TableName = { schema: "public", table: "openoutbox_events" };
/** Where this header is set, it is the event's correlation id. The table has no column for one. */
export const CORRELATION_HEADER = "correlation-id";

/** The table, and what of it belongs to one pipeline. */
export interface QueueScope {
  readonly table: EventTable;
  readonly tables: RelayTables;
  readonly pipeline: string;
  readonly types: TypeFilter;
  readonly laneCount: number;
  /** From this attempt on a reaped event is dead. */
  readonly attemptsMax: number;
  /** What stands before our instance's id in `locked_by`, for people; empty for none. */
  readonly lockPrefix: string;
}

/** How the shared statements see the table. */
export function eventTable(name: TableName): EventTable {
  return {
    name,
    quotedName: quoteTable(name),
    id: "t.event_id",
    idType: "uuid",
    eventType: "coalesce(t.event_type, '')",
    typeColumn: "t.event_type",
    key: "t.partition_key",
    payloadBytes: "coalesce(t.payload, '')",
    headersJson: "t.headers",
    correlationId: `t.headers ->> ${quoteLiteral(CORRELATION_HEADER)}`,
    createdAt: "t.created_at",
    unsettled: "t.status <> 'DELIVERED'",
  };
}

/** The instance behind `locked_by`, whatever stands before its id. For a foreign relay it is no id of ours. */
export const LOCK_OWNER = "right(t.locked_by, 36)";

/** For rows that are looked up by id: `=` would lead the planner to the index of all claims, which it takes for empty. */
export function oursCondition(owner: string): string {
  return `t.status is not distinct from 'DELIVERING' and ${LOCK_OWNER} = ${quoteLiteral(owner)}`;
}

/** Assignments that end a claim by its delivery. */
export const MARK_DELIVERED =
  "status = 'DELIVERED', delivered_at = now(), locked_by = null, locked_at = null, updated_at = now()";

/** Assignments that make a dead row wait again, from the start. `last_error` stays: it is what happened. */
export const SET_BACK = "status = 'PENDING', attempts = 0, available_at = now(), updated_at = now()";

/** What only an Open Outbox table has, all of it. */
const TELLING_COLUMNS = ["event_id", "partition_key", "status", "available_at", "locked_by", "locked_at"];

export function isOpenOutbox(columns: readonly string[]): boolean {
  return TELLING_COLUMNS.every((column) => columns.includes(column));
}

/** The hash slice of a row's key; a row without key goes by its id. `collate "C"`: equal means equal bytes. */
export function laneSql({ laneCount }: QueueScope): string {
  if (laneCount === 1) return "0::bigint";
  const hash = `hashtextextended(coalesce(t.partition_key, t.event_id::text) collate "C", 0)`;
  return `mod(${hash} & 9223372036854775807, ${laneCount})`;
}

export function mineCondition({ table, types }: QueueScope): string {
  return types === null ? "true" : typeCondition(table, types, "mine");
}
