import {
  describeGiven,
  driverState,
  firstColumn,
  type Given,
  type HandleKind,
  type HandleSession,
  isFunction,
  numbered,
  refused,
} from "./handle-session.ts";

/** node-postgres: a client between BEGIN and COMMIT, not a pool. */
export interface PgTransaction {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  /** Since pg 8.17. With older versions the server is asked. */
  getTransactionStatus?(): string | null;
  readonly totalCount?: never;
  readonly createQueryRunner?: never;
}

/** Recognizes node-postgres. */
export const pgHandle: HandleKind = {
  supported: "pg: a Client or PoolClient after BEGIN",
  session(given) {
    if (!isFunction(given.query)) return null;
    if ("totalCount" in given)
      throw refused("this is a pg Pool, whose statements each commit alone; pass a client of it");
    return pgSession(given as unknown as PgTransaction);
  },
};

/**
 * Other libraries have a `query` too: a handle that does not return rows like pg is refused before anything is written.
 */
export function pgSession(client: PgTransaction): HandleSession {
  const rowsOf = (answer: unknown): unknown[] => {
    const rows = (answer as { rows?: unknown } | null | undefined)?.rows;
    if (Array.isArray(rows)) return rows;
    throw refused(`${describeGiven(client)} has a query function that does not return rows as pg does`);
  };
  const status = (): string | null => {
    const answer = isFunction(client.getTransactionStatus) ? client.getTransactionStatus() : null;
    return typeof answer === "string" ? answer : null;
  };
  const ask = async (probe: string) => rowsOf(await answered(client, probe));
  return {
    column: async (statement, values) => firstColumn(rowsOf(await client.query(statement(numbered), [...values]))),
    ...driverState(status, ask),
  };
}

/** The `query` of another library may fail in its own way when called like pg's. */
async function answered(client: PgTransaction, probe: string): Promise<unknown> {
  try {
    return await client.query(probe);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw refused(
      `${describeGiven(client)} has a query function that fails when it is called as pg's: ${error.message}`,
    );
  }
}

/** Whether this looks like a client of node-postgres, not a pool. */
export function isPgClient(given: Given): boolean {
  return isFunction(given.query) && !("totalCount" in given);
}
