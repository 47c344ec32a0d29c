export { defineConfig, type RelayConfig } from "./config/reading/define-config.ts";
export { type Clock, type Random, systemClock, systemRandom } from "./core/clock.ts";
export { ERROR_CATALOGUE, type ErrorCode, isRelayError, RelayError } from "./core/errors.ts";
export type { Headers, Message, OutboxEvent } from "./core/event.ts";
export type { Hold, OnExhausted } from "./core/hold.ts";
export type { Limits, Timing } from "./core/limits.ts";
export { delivered, type Outcome, rejected, retry, type Scope, skipped } from "./core/outcome.ts";
export { exponential, RETRY_PRESETS, type RetryPolicy, schedule } from "./core/retry-policy.ts";
export type * from "./ports/attempt-recorder.ts";
export type * from "./ports/membership.ts";
export type * from "./ports/publisher.ts";
export type * from "./ports/queue-store.ts";
export type * from "./ports/technical-events.ts";
export { grantsFor } from "./postgres/grants.ts";
export { managedTableSql } from "./postgres/managed/managed-table.sql.ts";
export { migrateDown, migrateUp, migrationStatus, sqlOf } from "./postgres/migrations/migrate.ts";
export { type Database, type DatabaseOptions, openDatabase } from "./postgres/pool.ts";
export { memoryPublisher } from "./publishers/memory/memory-publisher.ts";
export { stdoutPublisher } from "./publishers/stdout/stdout-publisher.ts";
export type { DrainReport } from "./relay/drain.ts";
export { createRelay, type Relay, type RelayOptions } from "./relay/relay.ts";
export {
  defineIntentRelay,
  type Intent,
  type IntentMessage,
  type IntentRelay,
  type IntentTarget,
  intentRoute,
} from "./routing/intent-relay.ts";
export type { Route } from "./routing/routes.ts";
export { memorySource } from "./sources/memory/memory-source.ts";
export {
  type EventTableOptions,
  eventTableSource,
  type ManagedOutboxOptions,
  managedOutboxSource,
  type WalSourceOptions,
  walSource,
} from "./sources/postgres/log-sources.ts";
export { openOutboxSource } from "./sources/postgres/openoutbox/openoutbox-source.ts";
export { type PostgresSourceOptions, postgresSource } from "./sources/postgres/postgres-source.ts";
export { discoverTables } from "./sources/postgres/table-discovery.ts";
export { memoryTechnicalEventStore } from "./telemetry/attempts/memory-technical-event-store.ts";
export { postgresTechnicalEventStore } from "./telemetry/attempts/postgres-technical-event-store.ts";
export { TechnicalEventRecorder } from "./telemetry/attempts/technical-event-recorder.ts";
