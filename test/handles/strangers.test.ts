import assert from "node:assert/strict";
import { test } from "node:test";
import type { drizzle } from "drizzle-orm/node-postgres";
import type { Knex } from "knex";
import type { Kysely } from "kysely";
import type pg from "pg";
import type postgres from "postgres";
import type { Sequelize } from "sequelize";
import type { DataSource } from "typeorm";
import { createInbox } from "../../src/inbox/index.ts";
import { createOutbox } from "../../src/outbox/index.ts";
import type { TransactionHandle } from "../../src/postgres/transaction-handle.ts";

const outbox = createOutbox({ table: "shop.outbox" });
const inbox = createInbox({ table: "shop.inbox" });
const event = { type: "order.placed", payload: {} };

/** As other libraries answer: with an array of rows and fields, with nothing, or by a callback alone. */
const ANSWERS: Readonly<Record<string, () => unknown>> = {
  "rows and fields in an array": async () => [[], []],
  "nothing at all": () => undefined,
  "an emitter that is no promise": () => ({ on: () => {} }),
  "rows that are no list": async () => ({ rows: 3 }),
  "a fault of its own": () => {
    throw new TypeError("callback is not a function");
  },
};

class MysqlConnection {
  readonly query: () => unknown;
  constructor(query: () => unknown) {
    this.query = query;
  }
}

async function refusal(handle: unknown): Promise<string> {
  const messages: string[] = [];
  const given = handle as TransactionHandle;
  for (const call of [outbox.write(given, event), inbox.accept(given, "m1")]) {
    await assert.rejects(call, (error: Error & { code?: unknown }) => {
      assert.equal(error.code, "TRANSACTION_MISSING", String(error));
      messages.push(error.message);
      return true;
    });
  }
  assert.equal(messages[0], messages[1]);
  return messages[0] ?? "";
}

for (const [answer, query] of Object.entries(ANSWERS)) {
  test(`F5 a stranger whose query answers with ${answer} is refused by its name, without a TypeError`, async () => {
    assert.match(
      await refusal(new MysqlConnection(query)),
      /an object of the class MysqlConnection has a query function/,
    );
  });
}

class UnitOfWork {
  readonly execute = () => {};
  readonly rollback = () => {};
}

const UNKNOWN: readonly (readonly [handle: unknown, named: RegExp])[] = [
  [undefined, /it is undefined/],
  [null, /it is null/],
  ["begin", /it is a string/],
  [42, /it is a number/],
  [{}, /it is an empty object/],
  [Object.create(null), /it is an empty object/],
  [{ execute: () => {}, rollback: () => {} }, /it is an object with execute, rollback/],
  [new UnitOfWork(), /it is an object of the class UnitOfWork/],
  [function begin() {}, /it is the function begin/],
  [Promise.resolve(), /it is an object of the class Promise/],
];

test("F5 what no library knows is refused with what was given and the whole list of what is supported", async () => {
  const libraries = ["pg", "postgres.js", "Drizzle", "Kysely", "Prisma", "Knex", "TypeORM", "Sequelize", "MikroORM"];
  for (const [handle, named] of UNKNOWN) {
    const message = await refusal(handle);
    assert.match(message, named);
    for (const library of libraries) assert.ok(message.includes(`- ${library}: `), library);
  }
});

interface NonTransactions {
  readonly pool: pg.Pool;
  readonly sql: postgres.Sql;
  readonly drizzle: ReturnType<typeof drizzle>;
  readonly kysely: Kysely<object>;
  readonly knex: Knex;
  readonly source: DataSource;
  readonly sequelize: Sequelize;
}

test("F5 H4 pools, clients and databases are refused by their types already", () => {
  // Compiled, never run: what the compiler has to refuse.
  const refused = async (it: NonTransactions) => {
    // @ts-expect-error a pool of pg
    await outbox.write(it.pool, event);
    // @ts-expect-error the client of postgres.js
    await outbox.write(it.sql, event);
    // @ts-expect-error the database of Drizzle
    await outbox.write(it.drizzle, event);
    // @ts-expect-error the database of Kysely
    await outbox.write(it.kysely, event);
    // @ts-expect-error the instance of Knex
    await outbox.write(it.knex, event);
    // @ts-expect-error the data source of TypeORM
    await outbox.write(it.source, event);
    // @ts-expect-error the instance of Sequelize
    await inbox.accept(it.sequelize, "m1");
  };
  assert.equal(typeof refused, "function");
});
