import { CamelCasePlugin, Kysely, PostgresDialect, type Transaction } from "kysely";
import pg from "pg";
import type { OpenLibrary } from "./library.ts";

interface Tables {
  "shop.orders": { id: string; total: number };
}

export const openKysely: OpenLibrary = async (url) => {
  const dialect = new PostgresDialect({ pool: new pg.Pool({ connectionString: url, max: 3 }) });
  const db = new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin()] });
  const insert = (trx: Transaction<Tables>) => (id: string) =>
    trx.insertInto("shop.orders").values({ id, total: 1 }).execute();
  const ended = await db.startTransaction().execute();
  await ended.rollback().execute();
  return {
    transaction: (work) => db.transaction().execute((trx) => work(trx, insert(trx))),
    refused: [
      [db, /not a Kysely transaction/],
      [ended, /Kysely transaction has ended/],
    ],
    [Symbol.asyncDispose]: () => db.destroy(),
  };
};
