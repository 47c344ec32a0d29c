import {
  driverState,
  firstColumn,
  type HandleKind,
  type HandleSession,
  isFunction,
  KNOWN_OPEN,
  numbered,
  refused,
} from "./handle-session.ts";

/** Kysely on PostgreSQL: the `trx` of `db.transaction().execute(async (trx) => ..)` or `startTransaction()`. */
export interface KyselyTransaction {
  readonly isTransaction: true;
  executeQuery(query: object): Promise<{ rows: unknown[] }>;
  getExecutor?(): object;
}

/** Recognizes Kysely. */
export const kyselyHandle: HandleKind = {
  supported: "Kysely: the trx of transaction() or startTransaction()",
  session(given) {
    if (!isFunction(given.executeQuery)) return null;
    if (given.isTransaction !== true)
      throw refused("this is not a Kysely transaction; pass the trx that transaction() gives");
    if (given.isCommitted === true || given.isRolledBack === true) throw refused("this Kysely transaction has ended");
    return kyselySession(given as unknown as KyselyTransaction);
  },
};

/** Since 0.28 a transaction itself refuses statements after its end; before that, the server is asked every time. */
export function kyselySession(handle: KyselyTransaction): HandleSession {
  const run = async (sql: string, parameters: readonly (string | null)[]) => {
    const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
    return (await handle.executeQuery({ query, queryId: { queryId: "outbox-relay" }, sql, parameters })).rows;
  };
  return {
    column: async (statement, values) => firstColumn(await run(statement(numbered), values)),
    ...(knowsItsEnd(handle)
      ? KNOWN_OPEN
      : driverState(
          () => null,
          (probe) => run(probe, []),
        )),
  };
}

/**
 * Recognized by the executor's class name. In a bundle with shortened names it is not found, and the server is asked as
 * well.
 */
function knowsItsEnd(handle: KyselyTransaction): boolean {
  const executor = Object(handle.getExecutor?.()) as { constructor?: { name?: unknown } };
  return executor.constructor?.name === "NotCommittedOrRolledBackAssertingExecutor";
}
