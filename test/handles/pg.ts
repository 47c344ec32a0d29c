import pg from "pg";
import type { TransactionHandle } from "../../src/postgres/transaction-handle.ts";
import type { OpenLibrary, Work } from "./library.ts";

export const openPg: OpenLibrary = async (url) => {
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  const idle = await pool.connect();
  const insert = (client: pg.ClientBase) => (id: string) =>
    client.query("insert into shop.orders (id, total) values ($1, 1)", [id]);

  async function transaction(work: Work): Promise<void> {
    const client = await pool.connect();
    try {
      await client.query("begin");
      await work(client, insert(client));
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    } finally {
      client.release();
    }
  }

  async function savepoint(tx: TransactionHandle, work: Work): Promise<void> {
    const client = tx as pg.PoolClient;
    await client.query("savepoint inner_one");
    await work(client, insert(client)).catch(async (error: unknown) => {
      await client.query("rollback to savepoint inner_one");
      throw error;
    });
  }

  return {
    transaction,
    savepoint,
    refused: [
      [pool, /pg Pool/],
      [idle, /no BEGIN/],
    ],
    [Symbol.asyncDispose]: async () => {
      idle.release();
      await pool.end();
    },
  };
};
