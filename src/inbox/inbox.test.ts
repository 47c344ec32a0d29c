import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { makeHostile } from "../../test/servers/hostile-defaults.ts";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { until } from "../../test/servers/until.ts";
import { createInbox, inboxTableSql } from "./inbox.ts";
import { pgTransaction } from "./pg-transaction.ts";

let server: PostgresServer;
let pool: pg.Pool;
const inbox = createInbox({ table: "billing.inbox" });

before(async () => {
  server = await startPostgres({ version: 18 });
  pool = new pg.Pool({ connectionString: server.url, max: 6 });
  await pool.query(inboxTableSql("billing.inbox") + inboxTableSql("billing.inbox"));
  await pool.query("create table billing.invoices (message text)");
});

after(async () => {
  await pool.end();
  await server[Symbol.asyncDispose]();
});

/** Consumes a message in a transaction of its own. */
async function consume(message: string, end: "commit" | "rollback" = "commit"): Promise<number | undefined> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const done = await inbox.once(client, message, async () => {
      const { rowCount } = await client.query("insert into billing.invoices values ($1)", [message]);
      return rowCount ?? 0;
    });
    await client.query(end);
    return done;
  } finally {
    client.release();
  }
}

const effects = async (message: string): Promise<number> =>
  (await pool.query("select from billing.invoices where message = $1", [message])).rowCount ?? 0;

test("F5 a message that is delivered twice takes effect once", async () => {
  assert.deepEqual([await consume("m1"), await consume("m1")], [1, undefined]);
  assert.equal(await effects("m1"), 1);
});

test("F5 a message that arrives many times at once takes effect once", async () => {
  const results = await Promise.all(Array.from({ length: 20 }, () => consume("m2")));
  assert.equal(results.filter((done) => done === 1).length, 1);
  assert.equal(await effects("m2"), 1);
});

test("F5 a message whose transaction rolled back takes effect the next time, also for one that waited", async () => {
  const first = await pool.connect();
  await first.query("begin");
  assert.equal(await inbox.accept(first, "m3"), true);
  const second = consume("m3");
  await until("the second waits for the first", async () => {
    const { rowCount } = await pool.query("select from pg_locks where not granted");
    return (rowCount ?? 0) > 0;
  });
  await first.query("rollback");
  first.release();
  assert.equal(await second, 1);
  assert.equal(await consume("m3"), undefined);
});

test("F5 each consumer gets every message once", async () => {
  const other = createInbox({ table: "billing.inbox", consumer: "mail" });
  await consume("m4");
  const client = await pool.connect();
  await client.query("begin");
  assert.deepEqual([await other.accept(client, "m4"), await other.accept(client, "m4")], [true, false]);
  await client.query("commit");
  client.release();
});

test("F5 the inbox refuses to work outside a transaction", async () => {
  const client = await pool.connect();
  await assert.rejects(inbox.accept(client, "m5"), { code: "TRANSACTION_MISSING" });
  client.release();
  // @ts-expect-error a pool is not a transaction
  await assert.rejects(inbox.accept(pool, "m5"), { code: "TRANSACTION_MISSING" });
  await assert.rejects(inbox.accept(client, ""), { code: "EVENT_INVALID" });
});

test("F5 H4 consume runs the handler once, in the transaction that records the message", async () => {
  const consumer = createInbox({ table: "billing.inbox", consumer: "consume", transaction: pgTransaction(pool) });
  const bill = (id: string) =>
    consumer.consume({ id }, async (message, client) => {
      await client.query("insert into billing.invoices values ($1)", [message.id]);
      return message.id;
    });
  const results = await Promise.all(Array.from({ length: 10 }, () => bill("c1")));
  assert.deepEqual(results.toSorted(), ["c1", ...Array(9).fill(undefined)]);
  assert.equal(await effects("c1"), 1);
});

test("F5 H4 a handler that fails leaves nothing, and the message is new the next time", async () => {
  const consumer = createInbox({ table: "billing.inbox", consumer: "consume", transaction: pgTransaction(pool) });
  const failing = consumer.consume({ id: "c2" }, async ({ id }, client) => {
    await client.query("insert into billing.invoices values ($1)", [id]);
    throw new Error("no such customer");
  });
  await assert.rejects(failing, /no such customer/);
  assert.equal(await effects("c2"), 0);
  assert.equal(await consumer.consume({ id: "c2" }, async () => "done"), "done");
});

test("F5 H4 a connection that breaks in the handler is not used again", async () => {
  const consumer = createInbox({ table: "billing.inbox", consumer: "consume", transaction: pgTransaction(pool) });
  const broken = consumer.consume({ id: "c3" }, async (_, client) => {
    await client.query("select pg_terminate_backend(pg_backend_pid())");
  });
  await assert.rejects(broken);
  assert.equal(await consumer.consume({ id: "c3" }, async () => "done"), "done");
});

test("F5 H4 consume takes the transactions of other libraries, with their types", async () => {
  const db = drizzle({ client: pool });
  type Transaction = Parameters<Parameters<typeof db.transaction>[0]>[0];
  const consumer = createInbox<Transaction>({
    table: "billing.inbox",
    consumer: "drizzle",
    transaction: (work) => db.transaction(work),
  });
  const bill = () =>
    consumer.consume(
      { id: "c4" },
      async ({ id }, tx) => await tx.execute(`insert into billing.invoices values ('${id}')`),
    );
  assert.deepEqual([(await bill())?.rowCount, await bill()], [1, undefined]);
  assert.equal(await effects("c4"), 1);
});

test("F5 pruning forgets old messages of this consumer only, in bounded steps", async () => {
  await pool.query(`insert into billing.inbox select c, 'old-' || n, now() - interval '8 days'
    from generate_series(1, 5) n, unnest(array['default', 'mail']) c`);
  const client = await pool.connect();
  const weekMs = 7 * 24 * 3600 * 1000;
  assert.deepEqual([await inbox.prune(client, weekMs, 3), await inbox.prune(client, weekMs)], [3, 2]);
  const { rows } = await client.query(
    "select consumer, count(*)::int from billing.inbox where message_id like 'old%' group by 1",
  );
  client.release();
  assert.deepEqual(rows, [{ consumer: "mail", count: 5 }]);
});

test("H1 F5 a consumer whose search path shadows functions and operators, with other hostile defaults", async () => {
  await server.query("create role consumer login superuser");
  await makeHostile(server, "consumer");
  const client = new pg.Client(server.databaseUrl("postgres", "consumer"));
  await client.connect();
  const own = createInbox({ table: "hostile.inbox" });
  await client.query(`begin read write; ${inboxTableSql("hostile.inbox")} commit; begin read write`);
  assert.deepEqual([await own.accept(client, "m1"), await own.accept(client, "m1")], [true, false]);
  assert.equal(await own.prune(client, 3_600_000), 0);
  await client.query("commit");
  await server.query("update hostile.inbox set received_at = received_at - interval '2 hours'");
  await client.query("begin read write");
  assert.equal(await own.prune(client, 3_600_000), 1);
  await client.query("commit");
  await client.end();
});
