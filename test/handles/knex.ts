import knexOf, { type Knex } from "knex";
import type { OpenLibrary } from "./library.ts";

export const openKnex: OpenLibrary = async (url) => {
  const knex = knexOf({ client: "pg", connection: url, pool: { min: 0, max: 3 } });
  const elsewhere = await knexOf({ client: "pg" });
  const onMysql = { ...transactionShape(), client: { dialect: "mysql" } };
  const insert = (trx: Knex.Transaction) => (id: string) => trx("shop.orders").insert({ id, total: 1 });
  return {
    transaction: (work) => knex.transaction((trx) => work(trx, insert(trx))),
    savepoint: (tx, work) => (tx as unknown as Knex.Transaction).transaction((inner) => work(inner, insert(inner))),
    refused: [
      [knex, /Knex instance/],
      [elsewhere, /Knex instance/],
      [Object.assign(() => {}, onMysql), /Knex on mysql/],
    ],
    [Symbol.asyncDispose]: () => knex.destroy(),
  };
};

/** Knex loads the driver of a dialect at once, and none but that of PostgreSQL is there. */
const transactionShape = () => ({
  isTransaction: true,
  raw: async () => ({}),
  transaction: async () => ({}),
  isCompleted: () => false,
});
