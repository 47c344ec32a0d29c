import {
  driverState,
  firstColumn,
  type HandleKind,
  type HandleSession,
  isFunction,
  numbered,
  refused,
} from "./handle-session.ts";

/** postgres.js: the `sql` of `sql.begin(async (sql) => ..)`, not the client. */
export interface PostgresJsTransaction {
  unsafe(query: string, parameters?: never[]): PromiseLike<readonly unknown[]>;
  savepoint(...given: never[]): unknown;
  readonly begin?: never;
}

/** Recognizes postgres.js. */
export const postgresJsHandle: HandleKind = {
  supported: "postgres.js: the sql that begin() gives to its function",
  session(given) {
    if (!isFunction(given) || !isFunction(given.unsafe)) return null;
    if (isFunction(given.begin)) {
      throw refused(
        "this is the postgres.js client, whose statements each commit alone; pass the sql that begin() gives",
      );
    }
    return postgresJsSession(given as unknown as PostgresJsTransaction);
  },
};

/** The connection outlives the commit and does not report its state, so the server is asked every time. */
function postgresJsSession(sql: PostgresJsTransaction): HandleSession {
  const ask = async (probe: string) => await sql.unsafe(probe);
  return {
    column: async (statement, values) => firstColumn(await sql.unsafe(statement(numbered), [...values] as never[])),
    ...driverState(() => null, ask),
  };
}
