import { type Given, type HandleKind, isFunction, refused } from "./handle-session.ts";
import { knexSession } from "./knex-handle.ts";
import { type KyselyTransaction, kyselySession } from "./kysely-handle.ts";

/** MikroORM on PostgreSQL: the EntityManager of `em.transactional(async (em) => ..)`, or one after `begin()`. */
export interface MikroOrmEntityManager {
  isInTransaction(): boolean;
  getTransactionContext(): unknown;
  getDriver(): object;
}

/** Its transaction is one of Kysely, before version 7 one of Knex. */
export const mikroOrmHandle: HandleKind = {
  supported: "MikroORM: the EntityManager that transactional() gives, or one after begin()",
  session(given) {
    if (!isFunction(given.getTransactionContext) || !isFunction(given.isInTransaction)) return null;
    const em = given as unknown as MikroOrmEntityManager;
    const context = Object(em.getTransactionContext()) as Given;
    if (!em.isInTransaction()) {
      throw refused("this EntityManager of MikroORM has no transaction; pass the one that transactional() gives");
    }
    if (context.isCommitted === true || context.isRolledBack === true) {
      throw refused("the transaction of this EntityManager of MikroORM has ended");
    }
    const isStillOpen = () => em.getTransactionContext() === context;
    if (isFunction(context.executeQuery)) {
      return { ...kyselySession(context as unknown as KyselyTransaction), isStillOpen };
    }
    if (isFunction(context.raw) && isFunction(context.isCompleted)) return knexSession(context);
    throw refused("this EntityManager of MikroORM has no transaction of an SQL database");
  },
};
