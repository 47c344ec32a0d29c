import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import pg from "pg";
import { createInbox, inboxTableSql } from "../../src/inbox/index.ts";
import { createOutbox, outboxTableSql } from "../../src/outbox/index.ts";
import type { TransactionHandle } from "../../src/postgres/transaction-handle.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { openDrizzleOverPg, openDrizzleOverPostgresJs } from "./drizzle.ts";
import { openKnex } from "./knex.ts";
import { openKysely } from "./kysely.ts";
import type { Library, OpenLibrary } from "./library.ts";
import { openMikroOrm } from "./mikro-orm.ts";
import { openPg } from "./pg.ts";
import { openPostgresJs } from "./postgres-js.ts";
import { openPrisma } from "./prisma.ts";
import { openSequelize } from "./sequelize.ts";
import { openTypeOrmManager, openTypeOrmRunner } from "./typeorm.ts";

const LIBRARIES: Readonly<Record<string, OpenLibrary>> = {
  pg: openPg,
  "postgres.js": openPostgresJs,
  "Drizzle over node-postgres": openDrizzleOverPg,
  "Drizzle over postgres.js": openDrizzleOverPostgresJs,
  Kysely: openKysely,
  "Prisma 7 over its adapter for pg": openPrisma,
  Knex: openKnex,
  "TypeORM's EntityManager": openTypeOrmManager,
  "TypeORM's QueryRunner": openTypeOrmRunner,
  Sequelize: openSequelize,
  MikroORM: openMikroOrm,
};

/** Names with what some libraries take for the place of a parameter. */
const TABLES = { outbox: 'shop."outbox ?1 $1"', inbox: 'shop."inbox ?1 $1"' } as const;
const outbox = createOutbox({ table: TABLES.outbox });
const inbox = createInbox({ table: TABLES.inbox });

let server: PostgresServer;
let pool: pg.Pool;

before(async () => {
  server = await startPostgres({ version: 18 });
  pool = new pg.Pool({ connectionString: server.url, max: 2 });
  await pool.query(outboxTableSql(TABLES.outbox) + inboxTableSql(TABLES.inbox));
  await pool.query("create table shop.orders (id text primary key, total int not null)");
});
after(async () => {
  await pool.end();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => pool.query(`truncate shop.orders, ${TABLES.outbox}, ${TABLES.inbox}`));

async function committed(): Promise<{ orders: string[]; events: string[]; messages: string[] }> {
  const list = async (sql: string) => (await pool.query<{ it: string }>(`${sql} order by 1`)).rows.map(({ it }) => it);
  return {
    orders: await list("select id as it from shop.orders"),
    events: await list(`select payload ->> 'id' as it from ${TABLES.outbox}`),
    messages: await list(`select message_id as it from ${TABLES.inbox}`),
  };
}

const NOTHING = { orders: [], events: [], messages: [] };
const MISSING = { code: "TRANSACTION_MISSING" };
/** Kysely and Prisma, and MikroORM over the former, say it in their own words. */
const isRefusal = (error: unknown): boolean => error instanceof Error && !(error instanceof TypeError);
const AWKWARD = `it's "quoted" \\ grün $1 ? ?? \\? :name ?`;
const idOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, "0")}`;
const event = (number: number) => ({
  id: idOf(number),
  type: "order.placed",
  key: "o-1",
  payload: { id: `e${number}`, text: AWKWARD },
  headers: { text: AWKWARD },
});

for (const [name, open] of Object.entries(LIBRARIES)) {
  describe(name, () => {
    let library: Library;
    before(async () => {
      library = await open(server.url);
    });
    after(() => library[Symbol.asyncDispose]());

    test("F5 H3 what the application changes and its events are there together after the commit", async () => {
      await library.transaction(async (tx, insertOrder) => {
        await insertOrder("o1");
        assert.equal(await outbox.write(tx, event(1)), 1);
        assert.equal(await outbox.write(tx, [event(1), event(2), event(3)]), 2);
        assert.deepEqual(await committed(), NOTHING);
      });
      assert.deepEqual(await committed(), { orders: ["o1"], events: ["e1", "e2", "e3"], messages: [] });
      const { rows } = await pool.query(
        `select distinct payload ->> 'text' as a, headers ->> 'text' as b from ${TABLES.outbox}`,
      );
      assert.deepEqual(rows, [{ a: AWKWARD, b: AWKWARD }]);
    });

    test("F5 H3 nothing of both is there after a rollback, whichever of them failed", async () => {
      const orderFails = library.transaction(async (tx, insertOrder) => {
        await insertOrder("o1");
        await outbox.write(tx, event(1));
        await insertOrder("o1");
      });
      await assert.rejects(orderFails);
      const eventFails = library.transaction(async (tx, insertOrder) => {
        await insertOrder("o1");
        await outbox.write(tx, { ...event(1), type: "" });
      });
      await assert.rejects(eventFails, { code: "EVENT_INVALID" });
      assert.deepEqual(await committed(), NOTHING);
    });

    test("F5 an event that is refused leaves the transaction usable", async () => {
      await library.transaction(async (tx, insertOrder) => {
        await assert.rejects(outbox.write(tx, { ...event(1), type: "" }), { code: "EVENT_INVALID" });
        await insertOrder("o1");
        await outbox.write(tx, event(2));
      });
      assert.deepEqual(await committed(), { orders: ["o1"], events: ["e2"], messages: [] });
    });

    test("F5 the inbox takes a message once, together with what the consumer changes", async () => {
      const consume = (id: string, fails = false) =>
        library.transaction(async (tx, insertOrder) => {
          await inbox.once(tx, id, () => insertOrder(id));
          if (fails) throw new Error("the consumer fails");
        });
      await assert.rejects(consume("m1", true), /the consumer fails/);
      assert.deepEqual(await committed(), NOTHING);
      await consume("m1");
      await consume("m1");
      assert.deepEqual(await committed(), { orders: ["m1"], events: [], messages: ["m1"] });
      await pool.query(`update ${TABLES.inbox} set received_at = now() - interval '1 hour'`);
      await library.transaction(async (tx) => assert.equal(await inbox.prune(tx, 60_000), 1));
    });

    test("F5 a savepoint that is rolled back takes its event along, and no other", async (t) => {
      if (library.savepoint === undefined) return t.diagnostic("the library has no savepoints of its own");
      await library.transaction(async (tx, insertOrder) => {
        await insertOrder("o1");
        await outbox.write(tx, event(1));
        const inner = library.savepoint!(tx, async (innerTx, insertInner) => {
          await insertInner("o2");
          await outbox.write(innerTx, [event(2), event(3)]);
          throw new Error("inner");
        });
        await assert.rejects(inner, /inner/);
        await outbox.write(tx, event(4));
      });
      assert.deepEqual(await committed(), { orders: ["o1"], events: ["e1", "e4"], messages: [] });
    });

    test("F5 a transaction that ended writes nothing any more", async () => {
      let kept: TransactionHandle | undefined;
      await library.transaction(async (tx) => {
        kept = tx;
        await outbox.write(tx, event(1));
      });
      await assert.rejects(outbox.write(kept!, event(2)), isRefusal);
      await assert.rejects(outbox.write(kept!, [event(2), event(3)]), isRefusal);
      await assert.rejects(inbox.accept(kept!, "m1"), isRefusal);
      assert.deepEqual(await committed(), { orders: [], events: ["e1"], messages: [] });
    });

    test("F5 what stands for no transaction is refused by its name, with what to pass instead", async () => {
      for (const [handle, named] of library.refused) {
        const refusal = { ...MISSING, message: named };
        await assert.rejects(outbox.write(handle as TransactionHandle, event(1)), refusal);
        await assert.rejects(inbox.accept(handle as TransactionHandle, "m1"), refusal);
      }
      assert.ok(library.refused.length > 0);
      assert.deepEqual(await committed(), NOTHING);
    });
  });
}
