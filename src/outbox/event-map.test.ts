import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type } from "arktype";
import pg from "pg";
import * as v from "valibot";
import { z } from "zod";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { createOutbox, type Outbox, outboxTableSql } from "./index.ts";

interface ShopEvents {
  "order.placed": { id: string; total: number };
  "order.paid": { id: string };
}

const SCHEMAS = {
  zod: z.object({ id: z.string(), total: z.number() }),
  valibot: v.object({ id: v.string(), total: v.number() }),
  arktype: type({ id: "string", total: "number" }),
};

let server: PostgresServer;
let client: pg.Client;

before(async () => {
  server = await startPostgres({ version: 18 });
  client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(outboxTableSql("shop.outbox"));
});
after(async () => {
  await client.end();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => client.query("truncate shop.outbox"));

async function inTransaction(work: () => Promise<unknown>): Promise<unknown[]> {
  await client.query("begin");
  await work();
  await client.query("commit");
  return (await client.query("select event_type as type, payload from shop.outbox order by position")).rows;
}

test("F5 H4 a map of events checks type and payload at compile time", async () => {
  const outbox = createOutbox<ShopEvents>({ table: "shop.outbox" });
  const written = await inTransaction(async () => {
    await outbox.write(client, { type: "order.placed", key: "o-1", payload: { id: "o-1", total: 3 } });
    await outbox.write(client, [
      { type: "order.placed", payload: { id: "o-2", total: 4 } },
      { type: "order.paid", payload: { id: "o-1" } },
    ]);
    // Compiled, never run: the compiler must refuse these.
    const refused = async () => {
      // @ts-expect-error no such type
      await outbox.write(client, { type: "order.lost", payload: { id: "o-1" } });
      // @ts-expect-error the payload of another type
      await outbox.write(client, { type: "order.placed", payload: { id: "o-1" } });
      // @ts-expect-error a field of another type
      await outbox.write(client, [{ type: "order.paid", payload: { id: 1 } }]);
      // @ts-expect-error a field that the type does not have
      await outbox.write(client, { type: "order.paid", payload: { id: "o-1", total: 3 } });
      // @ts-expect-error a schema of another payload
      createOutbox<ShopEvents>({ table: "shop.outbox", schemas: { "order.placed": z.object({ id: z.number() }) } });
      // @ts-expect-error a schema of a type that the map does not have
      createOutbox<ShopEvents>({ table: "shop.outbox", schemas: { "order.lost": z.object({}) } });
    };
    assert.equal(typeof refused, "function");
  });
  assert.deepEqual(written, [
    { type: "order.placed", payload: { id: "o-1", total: 3 } },
    { type: "order.placed", payload: { id: "o-2", total: 4 } },
    { type: "order.paid", payload: { id: "o-1" } },
  ]);
});

test("H4 without a map any event is accepted, and schemas alone define a map", async () => {
  const free: Outbox = createOutbox({ table: "shop.outbox" });
  const made = createOutbox({ table: "shop.outbox", schemas: { "order.placed": SCHEMAS.zod } });
  // @ts-expect-error as the schema says
  const refused = () => made.write(client, { type: "order.placed", payload: { id: "o-1" } });
  const written = await inTransaction(async () => {
    await free.write(client, { type: "anything", payload: [1, 2] });
    await made.write(client, { type: "order.placed", payload: { id: "o-1", total: 3 } });
    await assert.rejects(refused, { code: "EVENT_INVALID" });
  });
  assert.equal(written.length, 2);
});

for (const [vendor, schema] of Object.entries(SCHEMAS)) {
  test(`F5 H4 a schema of ${vendor} refuses a payload before anything is sent, and names the field`, async () => {
    const outbox = createOutbox<ShopEvents>({ table: "shop.outbox", schemas: { "order.placed": schema } });
    const written = await inTransaction(async () => {
      const wrong = { type: "order.placed", payload: { id: "o-1", total: "3" } } as unknown as {
        type: "order.placed";
        payload: ShopEvents["order.placed"];
      };
      const fault = {
        code: "EVENT_INVALID",
        message: new RegExp(`type "order\\.placed".*\\(${vendor}\\): total: .*umber`),
      };
      await assert.rejects(outbox.write(client, wrong), fault);
      const right = { ...wrong, payload: { id: "o-1", total: 3 } };
      await assert.rejects(outbox.write(client, [right, wrong]), fault);
      assert.equal(await outbox.write(client, [right, { type: "order.paid", payload: { id: "o-1" } }]), 2);
    });
    assert.equal(written.length, 2);
  });
}

test("F5 H4 the value that a schema returns is written, also an asynchronous one's", async () => {
  const schema = z.object({
    id: z.string().transform(async (id) => id.toUpperCase()),
    currency: z.string().default("EUR"),
  });
  const outbox = createOutbox({ table: "shop.outbox", schemas: { "order.paid": schema } });
  const written = await inTransaction(() => outbox.write(client, { type: "order.paid", payload: { id: "o-1" } }));
  assert.deepEqual(written, [{ type: "order.paid", payload: { id: "O-1", currency: "EUR" } }]);
});

test("F5 a schema that throws, has many issues, or is invalid is reported", async () => {
  const failing = z.string().refine(() => {
    throw new Error("no connection to the price list");
  });
  const many = z.object(Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`field${at}`, z.string()])));
  const outbox = createOutbox({ table: "shop.outbox", schemas: { failing, many } });
  await inTransaction(async () => {
    await assert.rejects(outbox.write(client, { type: "failing", payload: "a" }), {
      code: "EVENT_INVALID",
      message: /the schema of its type \(zod\) failed: no connection to the price list/,
    });
    const empty = {} as never;
    await assert.rejects(outbox.write(client, { type: "many", payload: empty }), { message: /field4: .*; and 3 more/ });
  });
  for (const none of [null, {}, () => true, { "~standard": { version: 2 } }]) {
    const schemas = { many: none } as unknown as Record<string, typeof many>;
    const fault = { code: "CONFIG_INVALID", message: /schema of "many" does not follow Standard Schema/ };
    assert.throws(() => createOutbox({ table: "shop.outbox", schemas }), fault);
  }
});
