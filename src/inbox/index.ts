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
export { createInbox, type Inbox, type InboxOptions, inboxTableSql } from "./inbox.ts";
