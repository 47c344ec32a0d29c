import { DataSource, type EntityManager, EntitySchema, type QueryRunner } from "typeorm";
import type { OpenLibrary, Work } from "./library.ts";

const Order = new EntitySchema<{ id: string; total: number }>({
  name: "Order",
  schema: "shop",
  tableName: "orders",
  columns: { id: { type: "text", primary: true }, total: { type: "int" } },
});

const insert = (manager: EntityManager) => (id: string) => manager.insert(Order, { id, total: 1 });

async function open(url: string): Promise<DataSource> {
  return await new DataSource({ type: "postgres", url, entities: [Order], extra: { max: 3 } }).initialize();
}

export const openTypeOrmManager: OpenLibrary = async (url) => {
  const source = await open(url);
  return {
    transaction: (work) => source.transaction((manager) => work(manager, insert(manager))),
    savepoint: (tx, work) => (tx as unknown as EntityManager).transaction((manager) => work(manager, insert(manager))),
    refused: [
      [source, /TypeORM DataSource/],
      [source.manager, /EntityManager of TypeORM has no transaction/],
      [source.getRepository(Order), /TypeORM Repository/],
    ],
    [Symbol.asyncDispose]: () => source.destroy(),
  };
};

export const openTypeOrmRunner: OpenLibrary = async (url) => {
  const source = await open(url);
  const idle = source.createQueryRunner();

  async function transaction(work: Work): Promise<void> {
    const runner: QueryRunner = source.createQueryRunner();
    await runner.startTransaction();
    try {
      await work(runner, insert(runner.manager));
      await runner.commitTransaction();
    } catch (error) {
      await runner.rollbackTransaction();
      throw error;
    } finally {
      await runner.release();
    }
  }

  return {
    transaction,
    refused: [
      [idle, /QueryRunner of TypeORM has no open transaction/],
      [idle.manager, /QueryRunner of TypeORM has no open transaction/],
    ],
    [Symbol.asyncDispose]: () => source.destroy(),
  };
};
