import { drizzle as drizzleOverPg } from "drizzle-orm/node-postgres";
import { integer, pgSchema, text } from "drizzle-orm/pg-core";
import { drizzle as drizzleOverPostgresJs } from "drizzle-orm/postgres-js";
import pg from "pg";
import postgres from "postgres";
import type { TransactionHandle } from "../../src/postgres/transaction-handle.ts";
import type { OpenLibrary, Work } from "./library.ts";

const orders = pgSchema("shop").table("orders", { id: text().primaryKey(), total: integer().notNull() });

/** What the transactions of both drivers share, whose own types differ. */
interface Transaction {
  insert(table: typeof orders): { values(row: { id: string; total: number }): PromiseLike<unknown> };
  transaction(work: (tx: Transaction & TransactionHandle) => Promise<unknown>): Promise<unknown>;
}
const insert = (tx: Pick<Transaction, "insert">) => async (id: string) =>
  await tx.insert(orders).values({ id, total: 1 });

function savepoint(tx: TransactionHandle, work: Work): Promise<unknown> {
  return (tx as unknown as Transaction).transaction((inner) => work(inner, insert(inner)));
}

export const openDrizzleOverPg: OpenLibrary = async (url) => {
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  const db = drizzleOverPg(pool);
  return {
    transaction: (work) => db.transaction((tx) => work(tx, insert(tx))),
    savepoint,
    refused: [
      [db, /Drizzle's NodePgDatabase/],
      [db.select(), /Drizzle's PgSelectBuilder/],
    ],
    [Symbol.asyncDispose]: () => pool.end(),
  };
};

export const openDrizzleOverPostgresJs: OpenLibrary = async (url) => {
  const client = postgres(url, { max: 3, onnotice: () => {} });
  const db = drizzleOverPostgresJs(client);
  return {
    transaction: (work) => db.transaction((tx) => work(tx, insert(tx))),
    savepoint,
    refused: [[db, /Drizzle's PostgresJsDatabase/]],
    [Symbol.asyncDispose]: () => client.end(),
  };
};
