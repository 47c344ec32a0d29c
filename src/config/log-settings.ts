import { setting } from "./setting.ts";
import { duration, flag, list, oneOf, structure, text } from "./value-types.ts";
import { writtenSubscribers } from "./written-routes.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** Sources that are read by position: nothing is marked in them, and several may read the same. */
export const logSettings = {
  OUTBOX_MANAGED: setting(
    "sources.managed",
    list().optional(),
    "Outboxes of the relay's own kind, as schema.table: append-only, in partitions. `migrate up` creates them",
  ),
  OUTBOX_EVENT_TABLES: setting(
    "sources.eventTables",
    list().optional(),
    "Existing append-only tables of events, as schema.table: read by position, never written to",
  ),
  OUTBOX_WAL: setting(
    "sources.wal",
    list().optional(),
    "What is read from the write-ahead log: schema.table for the rows inserted there, message:PREFIX for pg_logical_emit_message",
  ),
  OUTBOX_WAL_PRESET: setting(
    "sources.walPreset",
    oneOf(["debezium", "plain"]).optional(),
    "How rows of OUTBOX_WAL become messages: debezium sends to outbox.event.AGGREGATETYPE by the aggregate's id, as its outbox router; by the columns by default",
  ),
  OUTBOX_WAL_HEADERS: setting(
    "sources.walHeaders",
    list().optional(),
    "More columns of rows in OUTBOX_WAL that travel as headers, as column or column:header",
  ),
  OUTBOX_WAL_SLOT: setting(
    "sources.walSlot",
    text(63).optional(),
    "An existing replication slot to read on from, for instance Debezium's; where one log is read by one subscriber",
  ),
  OUTBOX_WAL_PUBLICATION: setting(
    "sources.walPublication",
    text(63).optional(),
    "An existing publication that has the rows of OUTBOX_WAL; one of its own by default",
  ),
  LOG_START: setting(
    "sources.logStart",
    text(50).default("beginning"),
    "Where whoever never read a log begins: beginning, now, or a time such as 2026-05-01T00:00:00Z",
  ),
  SUBSCRIBER_LAG_MAX: setting(
    "sources.subscriberLagMax",
    duration({ minMs: MINUTE, maxMs: 3_650 * DAY }).optional(),
    "How long a log is kept beyond RETENTION for a subscriber that lags behind; for ever by default",
  ),
  MANAGED_PAYLOAD: setting(
    "managed.payload",
    oneOf(["text", "bytea"]).default("text"),
    "The type of the payload's column in a managed outbox that is created",
  ),
  MANAGED_PARTITION: setting(
    "managed.partition",
    oneOf(["hour", "day", "week", "month"]).default("day"),
    "The time that one partition of a managed outbox that is created spans",
  ),
  MANAGED_WAKE_UP: setting(
    "managed.wakeUp",
    flag().default(true),
    "Writers of a managed outbox that is created wake a relay that sleeps with NOTIFY; off: it looks by itself",
  ),
  OUTBOX_SUBSCRIBERS: setting(
    "subscribers",
    structure(writtenSubscribers, "[{name: audit, destination: audit, start: beginning}]").optional(),
    "Who reads the logs, each at its own pace: a name, the keys of a route, and where it starts",
  ),
};
