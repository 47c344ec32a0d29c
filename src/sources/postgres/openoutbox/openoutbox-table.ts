import { HEADERS_BYTES_MAX } from "../../../core/event.ts";
import { quoteLiteral, quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import { typeCondition } from "../../../postgres/type-condition.ts";
import { laneSql as laneOfShape } from "../event-columns.ts";
import type { PendingScope } from "../pending-condition.ts";
import type { TableShape } from "../table-shape.ts";

/** Where the table is by default. */
export const DEFAULT_TABLE: TableName = { schema: "public", table: "openoutbox_events" };
/** If set, this header is the event's correlation id. The table has no column for one. */
const CORRELATION = "t.headers ->> 'correlation-id'";

/** The table, and the part of it that belongs to one pipeline. */
export interface QueueScope extends PendingScope {
  /** At this attempt a reaped event becomes dead. */
  readonly attemptsMax: number;
  /** Precedes our instance's id in `locked_by`, for people; may be empty. */
  readonly lockPrefix: string;
}

/** Assignments that end a claim with its delivery. */
export const MARK_DELIVERED =
  "status = 'DELIVERED', delivered_at = now(), locked_by = null, locked_at = null, updated_at = now()";

/** Assignments that make a dead row pending again from the first attempt. `last_error` stays as history. */
const SET_BACK = "status = 'PENDING', attempts = 0, available_at = now(), updated_at = now()";

/**
 * The shape of the table, which its contract fixes. Conditions for rows that are looked up by id use `is not distinct
 * from`: with `=` the planner would choose the index of all claims, which it believes to be empty.
 */
export function openOutboxShape(name: TableName, hasOrderIndex = true): TableShape {
  return {
    preset: "openoutbox",
    name,
    quotedName: quoteTable(name),
    id: "t.event_id",
    idType: "uuid",
    idText: "t.event_id",
    eventType: `coalesce(t.event_type, '') collate "C"`,
    typeColumn: "t.event_type",
    key: "t.partition_key",
    keyText: "t.partition_key",
    payload: { kind: "bytea", column: "t.payload", body: "t.payload", isRequired: true },
    payloadBytes: "coalesce(t.payload, '')",
    headersText: "t.headers::text",
    headersJson: "t.headers",
    nullHeaders: "text",
    correlationId: CORRELATION,
    correlationText: `case when octet_length(t.headers::text) <= ${HEADERS_BYTES_MAX} then ${CORRELATION} end`,
    traceText: "null",
    unbounded: new Set(["key", "type"]),
    createdText: "t.created_at::text",
    createdAt: "t.created_at",
    attempts: "t.attempts",
    order: { column: "t.available_at", second: "t.created_at", unique: false, isCreatedAt: false },
    unsettled: "t.status <> 'DELIVERED'",
    available: "t.available_at <= now()",
    scheduledAt: "t.available_at",
    main: "t.status = 'PENDING'",
    conflicts: null,
    delivered: "t.status is not distinct from 'DELIVERED'",
    deliveredAt: "t.delivered_at",
    markDelivered: MARK_DELIVERED,
    // A separate statement writes failures, since it also ends the claim.
    markFailed: null,
    givenUp: "t.status is not distinct from 'DEAD'",
    setBack: SET_BACK,
    unmark: `${SET_BACK}, delivered_at = null, locked_by = null, locked_at = null`,
    claims: {
      claimed: "t.status = 'DELIVERING'",
      isOurs: oursCondition,
      revived: "attempts = t.attempts, next_at = greatest(clock_timestamp(), t.available_at)",
      matched: "event_type, partition_key, headers",
      hasOrderIndex,
    },
  };
}

/** The instance in `locked_by`, without its prefix. For another relay this matches none of our instances. */
export const LOCK_OWNER = "right(t.locked_by, 36)";

/** Whether this owner has claimed the row. */
export function oursCondition(owner: string): string {
  return `t.status is not distinct from 'DELIVERING' and ${LOCK_OWNER} = ${quoteLiteral(owner)}`;
}

/** All of these together exist only in an Open Outbox table. */
const IDENTIFYING_COLUMNS = ["event_id", "partition_key", "status", "available_at", "locked_by", "locked_at"];

/** Whether a table with these columns is an Open Outbox table. */
export function isOpenOutbox(columns: readonly string[]): boolean {
  return IDENTIFYING_COLUMNS.every((column) => columns.includes(column));
}

/** The lane as the statements compare it. */
export function laneSql({ laneCount, shape }: QueueScope): string {
  return laneCount === 1 ? "0::bigint" : laneOfShape(shape, laneCount);
}

/** Whether the row belongs to this pipeline. */
export function mineCondition({ shape, types }: QueueScope): string {
  return types === null ? "true" : typeCondition(shape, types, "mine");
}
