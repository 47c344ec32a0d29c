export { defineConfig, type RelayConfig } from "./config/reading/define-config.ts";
export type {
  AnswerBook,
  AnswerFigures,
  AnswerTimes,
  AnswerTotals,
  OpenRequest,
  Slowness,
  UsualPace,
  WindowFigures,
} from "./core/answer-times.ts";
export { type Clock, type Random, systemClock, systemRandom } from "./core/clock.ts";
export { ERROR_CATALOGUE, type ErrorCode, type ErrorEntry, isRelayError, RelayError } from "./core/errors.ts";
export type { EventHeaders, Message, OutboxEvent } from "./core/event.ts";
export type { Hold, OnExhausted, Unmarked } from "./core/hold.ts";
export type { LatencyCounts } from "./core/latency.ts";
export type { Limits, Timing } from "./core/limits.ts";
export {
  type FailureDetail,
  type FailureScope,
  type Outcome,
  type PublishOutcomes,
  publishOutcomes,
  type RetryDetail,
} from "./core/outcome.ts";
export {
  type ExponentialRetryOptions,
  exponentialRetry,
  RETRY_PRESETS,
  type RetryPolicy,
  scheduledRetry,
} from "./core/retry-policy.ts";
export type { Semaphore } from "./core/semaphore.ts";
export type * from "./ports/attempt-recorder.ts";
export type * from "./ports/membership.ts";
export type * from "./ports/publisher.ts";
export type * from "./ports/queue-store.ts";
export type * from "./ports/technical-events.ts";
export type * from "./ports/transactions.ts";
export type { ColumnNames } from "./postgres/column-names.ts";
export type { ErrorContext } from "./postgres/errors.ts";
export { type GrantRequest, grantsFor, type OwnedTable } from "./postgres/grants.ts";
export type { DatabaseHost, TargetSession } from "./postgres/hosts.ts";
export type { TableName } from "./postgres/identifiers.ts";
export type { ManagedFinding, ManagedTable, PartitionStep } from "./postgres/managed/managed-names.ts";
export { managedTableSql } from "./postgres/managed/managed-table.sql.ts";
export { type MigrationStatus, migrateDown, migrateUp, migrationStatus, sqlOf } from "./postgres/migrations/migrate.ts";
export type { Migration } from "./postgres/migrations/migration.ts";
export { type Database, type DatabaseOptions, type DatabaseTimeouts, openDatabase } from "./postgres/pool.ts";
export type { RelayTables } from "./postgres/relay-tables.ts";
export { type StdoutPublisherOptions, stdoutPublisher } from "./publishers/stdout/stdout-publisher.ts";
export type { DrainReport } from "./relay/drain.ts";
export type { UnreadyPipeline } from "./relay/readiness.ts";
export {
  createRelay,
  type Relay,
  type RelayDestination,
  type RelayOptions,
  type SourcePolicy,
} from "./relay/relay.ts";
export type { TechnicalEventListener } from "./relay/technical-event-bus.ts";
export type { Envelope } from "./routing/envelope.ts";
export {
  defineIntentRelay,
  type Intent,
  type IntentMessage,
  type IntentRelay,
  type IntentTarget,
  intentRoute,
} from "./routing/intent-relay.ts";
export type { Route } from "./routing/routes.ts";
export {
  type EventTableOptions,
  eventTableSource,
  type LogOptions,
  type ManagedOutboxOptions,
  managedOutboxSource,
  type WalSourceOptions,
  walSource,
} from "./sources/postgres/log-sources.ts";
export { type OpenOutboxSourceOptions, openOutboxSource } from "./sources/postgres/openoutbox/openoutbox-source.ts";
export { type PostgresSourceOptions, postgresSource } from "./sources/postgres/postgres-source.ts";
export { type DiscoveryRequest, discoverTables, type TableReference } from "./sources/postgres/table-discovery.ts";
export type {
  BatchStore,
  BatchWriter,
  BatchWriterOptions,
  BatchWriterState,
} from "./telemetry/attempts/batch-writer.ts";
export {
  type PostgresTechnicalEventStoreOptions,
  postgresTechnicalEventStore,
  type Queryable,
} from "./telemetry/attempts/postgres-technical-event-store.ts";
export { TechnicalEventRecorder } from "./telemetry/attempts/technical-event-recorder.ts";
