import { type Given, type HandleKind, isFunction, refused } from "./handle-session.ts";
import { isPgClient, type PgTransaction, pgSession } from "./pg-handle.ts";

/** Sequelize on PostgreSQL: the transaction of `sequelize.transaction()`, managed or not. */
export interface SequelizeTransaction {
  commit(): Promise<void>;
  rollback(): Promise<void>;
  afterCommit(...given: never[]): unknown;
}

/**
 * Statements go directly to the transaction's connection, because Sequelize's own `query` treats `$` in names as
 * parameters. The handle keeps its connection after its end, when other code may use it, so `finished` decides.
 */
export const sequelizeHandle: HandleKind = {
  supported: "Sequelize: the transaction of transaction()",
  session(given) {
    if (isFunction(given.getDialect) && isFunction(given.transaction)) {
      throw refused("this is the Sequelize instance, whose statements each commit alone; pass the t of transaction()");
    }
    if (!isFunction(given.commit) || !isFunction(given.rollback) || !("sequelize" in given)) return null;
    const { getDialect } = Object(given.sequelize) as { getDialect?: () => unknown };
    const dialect = isFunction(getDialect) ? getDialect.call(given.sequelize) : "postgres";
    if (dialect !== "postgres") throw refused(`this is Sequelize on ${String(dialect)}, not on PostgreSQL`);
    if (hasEnded(given)) throw refused("this Sequelize transaction has ended");
    const connection = connectionOf(given);
    if (connection === null) throw refused("this Sequelize transaction has not begun");
    const session = pgSession(connection);
    return { ...session, isStillOpen: () => !hasEnded(given) && session.isStillOpen() };
  },
};

/** A savepoint ends with the transaction around it. */
function hasEnded(given: Given): boolean {
  let at = given;
  while ("finished" in at || "parent" in at) {
    if (at.finished !== undefined) return true;
    at = Object(at.parent) as Given;
  }
  return false;
}

function connectionOf(given: Given): PgTransaction | null {
  const { getConnectionIfExists } = given;
  const connection = isFunction(getConnectionIfExists) ? getConnectionIfExists.call(given) : given.connection;
  const client = Object(connection) as Given;
  return isPgClient(client) ? (client as unknown as PgTransaction) : null;
}
