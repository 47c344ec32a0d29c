import { type EntityManager, EntitySchema, MikroORM } from "@mikro-orm/postgresql";
import type { OpenLibrary } from "./library.ts";

const Order = new EntitySchema<{ id: string; total: number }>({
  name: "Order",
  schema: "shop",
  tableName: "orders",
  properties: { id: { type: "text", primary: true }, total: { type: "integer" } },
});

export const openMikroOrm: OpenLibrary = async (url) => {
  const orm = await MikroORM.init({ entities: [Order], clientUrl: url, pool: { max: 3 } });
  const insert = (em: EntityManager) => (id: string) => em.insert(Order, { id, total: 1 });
  return {
    transaction: (work) => orm.em.fork().transactional((em) => work(em, insert(em))),
    savepoint: (tx, work) => (tx as unknown as EntityManager).transactional((em) => work(em, insert(em))),
    refused: [
      [orm.em, /EntityManager of MikroORM has no transaction/],
      [orm.em.fork(), /EntityManager of MikroORM has no transaction/],
    ],
    [Symbol.asyncDispose]: () => orm.close(),
  };
};
