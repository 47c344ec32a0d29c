export { isRelayError, RelayError } from "../core/errors.ts";
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
export {
  type ConsumingInbox,
  type ConsumingInboxOptions,
  createInbox,
  type Inbox,
  type InboxOptions,
  inboxTableSql,
} from "./inbox.ts";
export { type PgPool, type PgPoolClient, pgTransaction, type TransactionRunner } from "./pg-transaction.ts";
