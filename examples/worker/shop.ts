import type pg from "pg";
import { createOutbox, outboxTableSql } from "../../src/outbox/index.ts"; // in your project: "outbox-relay/outbox"

export const OUTBOX_TABLE = "shop.outbox";
export const SHOP_SQL = `${outboxTableSql(OUTBOX_TABLE)}
create table if not exists shop.orders (id text primary key, total int not null, paid boolean not null default false);`;

const outbox = createOutbox({ table: OUTBOX_TABLE });

/** The order and the news of it: both are there, or neither. The shop knows nothing of brokers. */
export async function placeOrder(pool: pg.Pool, id: string, total: number): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query("insert into shop.orders (id, total) values ($1, $2)", [id, total]);
    await outbox.write(client, { type: "order.placed", key: id, payload: { id, total } });
  });
}

export async function payOrder(pool: pg.Pool, id: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query("update shop.orders set paid = true where id = $1", [id]);
    await outbox.write(client, { type: "order.paid", key: id, payload: { id } });
  });
}

async function inTransaction(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await work(client);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}
