import { quoteLiteral } from "../identifiers.ts";
import { driverState, firstColumn, type Given, type HandleKind, isFunction, refused } from "./handle-session.ts";

/** Drizzle on PostgreSQL: the `tx` of `db.transaction(async (tx) => ..)`, not the database. */
export interface DrizzleTransaction {
  execute(query: string): PromiseLike<unknown>;
  rollback(): never;
}

/** Every class of Drizzle has its name here, even when several copies of Drizzle are installed. */
const KIND = Symbol.for("drizzle:entityKind");

/** A finished transaction still has its connection, so the driver or the server is asked every time. */
export const drizzleHandle: HandleKind = {
  supported: "Drizzle: the tx that transaction() gives to its function",
  session(given) {
    const kinds = kindsOf(given);
    if (kinds.length === 0) return null;
    if (!kinds.some((kind) => /^Pg\w*Transaction$/.test(kind)) || !isFunction(given.execute)) {
      throw refused(
        `this is Drizzle's ${kinds[0]}, not a transaction on PostgreSQL; pass the tx that transaction() gives`,
      );
    }
    const handle = given as unknown as DrizzleTransaction;
    const { client } = Object(given.session) as { client?: { getTransactionStatus?(): string | null } };
    const status = () => (isFunction(client?.getTransactionStatus) ? client.getTransactionStatus() : null);
    return {
      // As plain text: only Drizzle's own `sql` can create a statement with parameters.
      column: async (statement, values) => {
        const literal = (at: number) => (values[at - 1] == null ? "null" : quoteLiteral(String(values[at - 1])));
        return firstColumn(rowsOf(await handle.execute(statement(literal))));
      },
      ...driverState(status, async (probe) => await handle.execute(probe)),
    };
  },
};

/** From the class itself up to its base class. */
function kindsOf(given: Given): string[] {
  const kinds: string[] = [];
  let at: unknown = given.constructor;
  while (isFunction(at)) {
    const kind = Object.hasOwn(at, KIND) ? (at as unknown as Given)[KIND] : undefined;
    if (typeof kind === "string") kinds.push(kind);
    at = Object.getPrototypeOf(at);
  }
  return kinds;
}

/** node-postgres returns an object with rows, others return the rows. */
function rowsOf(answer: unknown): unknown {
  return Array.isArray(answer) ? answer : (answer as { rows?: unknown } | null)?.rows;
}
