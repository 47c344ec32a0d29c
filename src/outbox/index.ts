export { isRelayError, RelayError } from "../core/errors.ts";
export type { ColumnNames } from "../postgres/column-names.ts";
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
export type { AnyEvents, EventOf } from "./event-map.ts";
export type { EventSchemas, StandardSchema, StandardSchemaIssue, StandardSchemaResult } from "./event-schemas.ts";
export type { NewEvent } from "./new-event.ts";
export { createOutbox, type Outbox, type OutboxOptions } from "./outbox.ts";
export { type OutboxTableOptions, outboxTableSql } from "./outbox-table.ts";
export type { TraceContext } from "./trace-context.ts";
