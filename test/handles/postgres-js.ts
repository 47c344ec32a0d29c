import postgres from "postgres";
import type { OpenLibrary } from "./library.ts";

export const openPostgresJs: OpenLibrary = async (url) => {
  // A setting that renames columns, which the writer must not depend on.
  const sql = postgres(url, { max: 3, transform: postgres.toPascal, onnotice: () => {} });
  const reserved = await sql.reserve();
  const insert = (tx: postgres.TransactionSql) => (id: string) =>
    tx`insert into shop.orders (id, total) values (${id}, 1)`;
  return {
    transaction: (work) => sql.begin((tx) => work(tx, insert(tx))),
    savepoint: (tx, work) =>
      (tx as unknown as postgres.TransactionSql).savepoint((inner) => work(inner, insert(inner))),
    refused: [
      [sql, /postgres\.js client/],
      [reserved, /no BEGIN/],
    ],
    [Symbol.asyncDispose]: async () => {
      reserved.release();
      await sql.end();
    },
  };
};
