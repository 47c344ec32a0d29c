import { writtenSubscribers } from "../reading/written-routes.ts";
import { setting } from "./setting.ts";
import { duration, flag, list, oneOf, structure, text } from "./value-types.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/**
 * Settings of logs: sources that are read by position. Nothing is marked in them, and several readers can share one.
 */
export const logSettings = {
  OUTBOX_MANAGED: setting(
    "sources.managed",
    list().optional(),
    "Managed outboxes, as schema.table: append-only and partitioned. `migrate up` creates them",
  ),
  OUTBOX_EVENT_TABLES: setting(
    "sources.eventTables",
    list().optional(),
    "Existing append-only event tables, as schema.table: read by position, never written",
  ),
  OUTBOX_WAL: setting(
    "sources.wal",
    list().optional(),
    "Sources in the write-ahead log: schema.table for rows inserted there, message:PREFIX for pg_logical_emit_message",
  ),
  OUTBOX_WAL_PRESET: setting(
    "sources.walPreset",
    oneOf(["debezium", "plain"]).optional(),
    "How rows of OUTBOX_WAL become messages: debezium sends to outbox.event.AGGREGATETYPE with the aggregate's id as key, like its outbox router; default: by the table's columns",
  ),
  OUTBOX_WAL_HEADERS: setting(
    "sources.walHeaders",
    list().optional(),
    "Additional columns of OUTBOX_WAL rows to send as headers, as column or column:header",
  ),
  OUTBOX_WAL_SLOT: setting(
    "sources.walSlot",
    text(63).optional(),
    "Existing replication slot to continue from, for instance Debezium's; only for one log with one subscriber",
  ),
  OUTBOX_WAL_PUBLICATION: setting(
    "sources.walPublication",
    text(63).optional(),
    "Existing publication with the rows of OUTBOX_WAL; default: the relay creates one",
  ),
  LOG_START: setting(
    "sources.logStart",
    text(50).default("beginning"),
    "Where a new reader of a log starts: beginning, now, or a time such as 2026-05-01T00:00:00Z",
  ),
  SUBSCRIBER_LAG_MAX: setting(
    "sources.subscriberLagMax",
    duration({ minMs: MINUTE, maxMs: 3_650 * DAY }).optional(),
    "How long a log is kept beyond RETENTION for a lagging subscriber; default: for ever",
  ),
  MANAGED_PAYLOAD: setting(
    "managed.payload",
    oneOf(["text", "bytea"]).default("text"),
    "Type of the payload column when a managed outbox is created",
  ),
  MANAGED_PARTITION: setting(
    "managed.partition",
    oneOf(["hour", "day", "week", "month"]).default("day"),
    "Time range of one partition when a managed outbox is created",
  ),
  MANAGED_WAKE_UP: setting(
    "managed.wakeUp",
    flag().default(true),
    "Whether writes to a new managed outbox wake an idle relay with NOTIFY; off: the relay only polls",
  ),
  OUTBOX_SUBSCRIBERS: setting(
    "subscribers",
    structure(writtenSubscribers, "[{name: audit, destination: audit, start: beginning}]").optional(),
    "Independent readers of the logs: each has a name, the keys of a route, and where it starts",
  ),
};
