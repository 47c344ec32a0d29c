import pg from "pg";
import { createInbox, type InboxMessage, inboxTableSql, pgTransaction } from "../../src/inbox/index.ts"; // in your project: "outbox-relay/inbox"

export const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const inbox = createInbox({ table: "billing.inbox", consumer: "invoices", transaction: pgTransaction(pool) });

/** In production a migration creates them. */
export async function createTables(): Promise<void> {
  await pool.query(inboxTableSql("billing.inbox"));
  await pool.query("create table if not exists billing.invoices (order_id text primary key, total int not null)");
}

/** When this has resolved, the invoice is committed. When it rejects, nothing was written. */
export async function bill(message: InboxMessage): Promise<void> {
  const isNew = await inbox.consume(message, async ({ json }, client) => {
    const { id, total } = json<{ id: string; total: number }>();
    await client.query("insert into billing.invoices values ($1, $2)", [id, total]);
    return true;
  });
  console.log(`${message.type} of ${message.key}: ${isNew ? "invoice written" : "was here before"}`);
}
