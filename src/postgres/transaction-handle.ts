import { RelayError } from "../core/errors.ts";
import { type DrizzleTransaction, drizzleHandle } from "./handles/drizzle-handle.ts";
import { describeGiven, type Given, type HandleKind, type HandleSession } from "./handles/handle-session.ts";
import { type KnexTransaction, knexHandle } from "./handles/knex-handle.ts";
import { type KyselyTransaction, kyselyHandle } from "./handles/kysely-handle.ts";
import { type MikroOrmEntityManager, mikroOrmHandle } from "./handles/mikro-orm-handle.ts";
import { type PgTransaction, pgHandle } from "./handles/pg-handle.ts";
import { type PostgresJsTransaction, postgresJsHandle } from "./handles/postgres-js-handle.ts";
import { type PrismaTransaction, prismaHandle } from "./handles/prisma-handle.ts";
import { type SequelizeTransaction, sequelizeHandle } from "./handles/sequelize-handle.ts";
import { type TypeOrmEntityManager, type TypeOrmQueryRunner, typeOrmHandle } from "./handles/typeorm-handle.ts";

export { type HandleSession, hasCode, type Statement } from "./handles/handle-session.ts";
export type {
  DrizzleTransaction,
  KnexTransaction,
  KyselyTransaction,
  MikroOrmEntityManager,
  PgTransaction,
  PostgresJsTransaction,
  PrismaTransaction,
  SequelizeTransaction,
  TypeOrmEntityManager,
  TypeOrmQueryRunner,
};

/** An open transaction of the application, recognized by its shape: none of the packages is imported. */
export type TransactionHandle =
  | PgTransaction
  | PostgresJsTransaction
  | PrismaTransaction
  | DrizzleTransaction
  | KyselyTransaction
  | KnexTransaction
  | TypeOrmEntityManager
  | TypeOrmQueryRunner
  | SequelizeTransaction
  | MikroOrmEntityManager;

/** In this order: other libraries have a `query` too, so pg comes last. */
const KINDS: readonly HandleKind[] = [
  ...[typeOrmHandle, mikroOrmHandle, sequelizeHandle, knexHandle, postgresJsHandle],
  ...[prismaHandle, kyselyHandle, drizzleHandle, pgHandle],
];

/** Throws TRANSACTION_MISSING for a pool or a database, which are no transactions, and for unknown handles. */
export function sessionOf(handle: TransactionHandle): HandleSession {
  const given = Object(handle) as Given;
  for (const kind of KINDS) {
    const session = kind.session(given);
    if (session !== null) return session;
  }
  const supported = KINDS.map((kind) => `- ${kind.supported}`).join("\n");
  const what = `The handle is not a transaction of a supported library: it is ${describeGiven(handle)}`;
  throw new RelayError("TRANSACTION_MISSING", `${what}. Supported handles:\n${supported}\n`);
}
