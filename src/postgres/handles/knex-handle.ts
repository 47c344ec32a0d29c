import {
  firstColumn,
  type Given,
  type HandleKind,
  type HandleSession,
  isFunction,
  refused,
  type Statement,
} from "./handle-session.ts";

/** Knex on PostgreSQL: the `trx` of `knex.transaction()`, not the instance. */
export interface KnexTransaction {
  raw(sql: string, bindings: readonly (string | null)[]): PromiseLike<unknown>;
  isCompleted(): boolean;
}

/** The dialects of Knex that speak PostgreSQL's SQL. */
const DIALECTS = new Set(["postgresql", "cockroachdb", "redshift"]);

/** Recognizes Knex. */
export const knexHandle: HandleKind = {
  supported: "Knex: the trx of transaction()",
  session(given) {
    if (!isFunction(given) || !isFunction(given.raw) || !isFunction(given.transaction)) return null;
    if (given.isTransaction !== true || !isFunction(given.isCompleted)) {
      throw refused("this is the Knex instance, whose statements each commit alone; pass the trx of transaction()");
    }
    const { dialect } = Object(given.client) as { dialect?: unknown };
    if (typeof dialect === "string" && !DIALECTS.has(dialect))
      throw refused(`this is Knex on ${dialect}, not on PostgreSQL`);
    return knexSession(given);
  },
};

/** A session on a transaction of Knex. */
export function knexSession(given: Given): HandleSession {
  const trx = given as unknown as KnexTransaction;
  return {
    column: async (statement, values) => {
      const { sql, bindings } = withQuestionMarks(statement, values);
      return firstColumn((Object(await trx.raw(sql, bindings)) as { rows?: unknown }).rows);
    },
    requireTransaction: async () => {
      if (trx.isCompleted()) throw refused("this Knex transaction has ended");
    },
    isStillOpen: () => !trx.isCompleted(),
  };
}

/** Knex numbers its placeholders by order, and treats any other question mark as a placeholder. */
function withQuestionMarks(statement: Statement, values: readonly (string | null)[]) {
  const parts = statement((at) => `\0${at}\0`).split("\0");
  const places = parts.filter((_, at) => at % 2 === 1);
  const sql = parts.map((part, at) => (at % 2 === 1 ? "?" : part.replaceAll("?", "\\?"))).join("");
  return { sql, bindings: places.map((place) => values[Number(place) - 1] ?? null) };
}
