export type { AnyEvents, EventOf } from "../outbox/event-map.ts";
export type {
  EventSchemas,
  StandardSchema,
  StandardSchemaIssue,
  StandardSchemaResult,
} from "../outbox/event-schemas.ts";
export type { NewEvent } from "../outbox/new-event.ts";
export type { Outbox, OutboxOptions } from "../outbox/outbox.ts";
export type { TraceContext } from "../outbox/trace-context.ts";
export type {
  DrizzleTransaction,
  KnexTransaction,
  KyselyTransaction,
  MikroOrmEntityManager,
  PgTransaction,
  PostgresJsTransaction,
  PrismaTransaction,
  SequelizeTransaction,
  TransactionHandle,
  TypeOrmEntityManager,
  TypeOrmQueryRunner,
} from "../postgres/transaction-handle.ts";
export { OutboxHealthIndicator, type OutboxHealthResult } from "./outbox-health.ts";
export { OutboxModule, type OutboxModuleAsyncOptions, type OutboxModuleOptions } from "./outbox-module.ts";
export { type MakeRelay, OutboxRelay, type RelayInProcess } from "./outbox-relay.ts";
export { OutboxService } from "./outbox-service.ts";
