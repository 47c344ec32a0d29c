import { DataTypes, Sequelize, Transaction } from "sequelize";
import type { OpenLibrary } from "./library.ts";

export const openSequelize: OpenLibrary = async (url) => {
  const sequelize = new Sequelize(url, { logging: false, pool: { max: 3 } });
  const columns = { id: { type: DataTypes.TEXT, primaryKey: true }, total: DataTypes.INTEGER };
  const Order = sequelize.define("Order", columns, { schema: "shop", tableName: "orders", timestamps: false });
  const insert = (transaction: Transaction) => (id: string) => Order.create({ id, total: 1 }, { transaction });
  return {
    transaction: (work) => sequelize.transaction((t) => work(t, insert(t))),
    savepoint: (tx, work) =>
      sequelize.transaction({ transaction: tx as unknown as Transaction }, (t) => work(t, insert(t))),
    refused: [
      [sequelize, /Sequelize instance/],
      [new Transaction(sequelize, {}), /Sequelize transaction has not begun/],
    ],
    [Symbol.asyncDispose]: () => sequelize.close(),
  };
};
