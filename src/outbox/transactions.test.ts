import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { drizzle } from "drizzle-orm/node-postgres";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { createOutbox, outboxTableSql } from "./index.ts";

let server: PostgresServer;
let pool: pg.Pool;
const outbox = createOutbox({ table: "shop.outbox" });
const event = (id: string) => ({ id, type: "order.placed", key: "o-1", payload: { id } });
const ID = "00000000-0000-7000-8000-000000000001";
const MISSING = { code: "TRANSACTION_MISSING" };

before(async () => {
  server = await startPostgres({ version: 18 });
  pool = new pg.Pool({ connectionString: server.url, max: 4 });
  await pool.query(outboxTableSql("shop.outbox"));
});
after(async () => {
  await pool.end();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => pool.query("truncate shop.outbox"));

const count = async (): Promise<number> => (await pool.query("select from shop.outbox")).rowCount ?? 0;

async function withClient(use: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await use(client);
  } finally {
    await client.query("rollback");
    client.release();
  }
}

describe("pg", () => {
  test("F5 C4 an event written as the first statement of a transaction is there after the commit, once", () =>
    withClient(async (client) => {
      for (const written of [1, 0]) {
        await client.query("begin");
        assert.equal(await outbox.write(client, event(ID)), written);
        assert.equal(client.getTransactionStatus(), "T");
        await client.query("commit");
      }
      assert.equal(await count(), 1);
    }));

  test("F5 a rollback removes the events, also to a savepoint", () =>
    withClient(async (client) => {
      await client.query("begin");
      await outbox.write(client, event(ID));
      await client.query("savepoint a");
      await outbox.write(client, [event(ID.replace(/1$/, "2")), event(ID.replace(/1$/, "3"))]);
      await client.query("rollback to savepoint a");
      await client.query("commit");
      assert.equal(await count(), 1);
      await client.query("begin");
      await outbox.write(client, event(ID.replace(/1$/, "4")));
      await client.query("rollback");
      assert.equal(await count(), 1);
    }));

  test("F5 a client outside a transaction is refused: fresh, after a commit, after a rollback", () =>
    withClient(async (client) => {
      await assert.rejects(outbox.write(client, event(ID)), MISSING);
      for (const end of ["commit", "rollback"]) {
        await client.query("begin");
        await client.query(end);
        await assert.rejects(outbox.write(client, event(ID)), MISSING);
        await assert.rejects(outbox.write(client, [event(ID), event(ID)]), MISSING);
      }
      assert.equal(await count(), 0);
    }));

  test("F5 an unused client, and one of an older driver, behave the same", async () => {
    const fresh = new pg.Client(server.url);
    await fresh.connect();
    await assert.rejects(outbox.write(fresh, event(ID)), MISSING);
    const older = { query: (text: string, values?: unknown[]) => fresh.query(text, values) };
    await assert.rejects(outbox.write(older, event(ID)), MISSING);
    await fresh.query("begin");
    assert.equal(await outbox.write(older, event(ID)), 1);
    await fresh.query("rollback");
    await fresh.end();
  });

  test("F5 a pool is refused, already by its type", async () => {
    // @ts-expect-error a pool is not a transaction
    await assert.rejects(outbox.write(pool, event(ID)), MISSING);
    assert.equal(await count(), 0);
  });

  test("F5 a BEGIN that was not awaited is detected; a COMMIT that was not awaited is reported", () =>
    withClient(async (client) => {
      const begun = client.query("begin");
      assert.equal(await outbox.write(client, event(ID)), 1);
      await begun;
      const written = outbox.write(client, event(ID.replace(/1$/, "2")));
      const committed = client.query("commit");
      await assert.rejects(written, MISSING);
      await committed;
    }));

  test("F5 a failed transaction is reported as failed and writes no event", () =>
    withClient(async (client) => {
      await client.query("begin");
      await assert.rejects(client.query("select 1 / 0"));
      await assert.rejects(outbox.write(client, event(ID)), { code: "25P02" });
    }));

  test("F5 a refused event leaves the transaction usable", () =>
    withClient(async (client) => {
      await client.query("begin");
      await assert.rejects(outbox.write(client, { ...event(ID), type: "" }), { code: "EVENT_INVALID" });
      await assert.rejects(createOutbox({ table: "shop.none" }).write(client, event(ID)), { code: "TABLE_MISSING" });
      assert.equal(await outbox.write(client, event(ID)), 1);
      await client.query("commit");
      assert.equal(await count(), 1);
    }));

  test("F5 a value that is not a handle is refused", async () => {
    // @ts-expect-error not a handle
    await assert.rejects(outbox.write({}, event(ID)), MISSING);
    // @ts-expect-error not a handle
    await assert.rejects(outbox.write(undefined, event(ID)), MISSING);
  });
});

describe("Drizzle", () => {
  test("F5 C4 a transaction writes, also a nested one; a rollback leaves nothing", async () => {
    const db = drizzle(pool);
    const payload = { text: `it's "quoted" \\ grün \\u0000 $1 ?` };
    await db.transaction(async (tx) => {
      assert.equal(await outbox.write(tx, { ...event(ID), payload }), 1);
      await tx.transaction(async (inner) => assert.equal(await outbox.write(inner, [event(ID), event(ID)]), 0));
    });
    const { rows } = await pool.query("select payload::text from shop.outbox");
    assert.deepEqual(rows, [{ payload: JSON.stringify(payload) }]);
    const failed = db.transaction(async (tx) => {
      await outbox.write(tx, event(ID.replace(/1$/, "2")));
      tx.rollback();
    });
    await assert.rejects(failed);
    assert.equal(await count(), 1);
  });

  test("F5 the database itself and a transaction that ended are refused", async () => {
    const db = drizzle(pool);
    // @ts-expect-error the database is not a transaction
    await assert.rejects(outbox.write(db, event(ID)), MISSING);
    const kept = await db.transaction(async (tx) => tx);
    await assert.rejects(outbox.write(kept, event(ID)), MISSING);
    assert.equal(await count(), 0);
  });
});

describe("Kysely", () => {
  const open = () =>
    new Kysely<object>({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: server.url }) }) });

  test("F5 C4 a transaction writes, also a controlled one; a rollback leaves nothing", async () => {
    await using db = open();
    await db.transaction().execute(async (trx) => {
      await trx.executeQuery(CompiledQuery.raw("select 1"));
      assert.equal(await outbox.write(trx, [event(ID), event(ID.replace(/1$/, "2"))]), 2);
      assert.equal(await outbox.write(trx, event(ID)), 0);
    });
    const controlled = await db.startTransaction().execute();
    assert.equal(await outbox.write(controlled, event(ID.replace(/1$/, "3"))), 1);
    await controlled.rollback().execute();
    await assert.rejects(outbox.write(controlled, event(ID)));
    assert.equal(await count(), 2);
  });

  test("F5 a transaction of a version that does not know its own end is refused after it", () =>
    withClient(async (client) => {
      const executeQuery = async (query: object) => {
        const { sql, parameters } = query as CompiledQuery;
        return await client.query(sql, [...parameters]);
      };
      const older = { isTransaction: true, executeQuery } as const;
      await client.query("begin");
      assert.equal(await outbox.write(older, event(ID)), 1);
      await client.query("commit");
      await assert.rejects(outbox.write(older, event(ID.replace(/1$/, "2"))), MISSING);
      assert.equal(await count(), 1);
    }));

  test("F5 the database itself and a transaction that ended are refused", async () => {
    await using db = open();
    // @ts-expect-error the database is not a transaction
    await assert.rejects(outbox.write(db, event(ID)), MISSING);
    const kept = await db.transaction().execute(async (trx) => trx);
    await assert.rejects(outbox.write(kept, event(ID)));
    assert.equal(await count(), 0);
  });
});
