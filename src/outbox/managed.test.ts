import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { managedTableSql } from "../postgres/managed/managed-table.sql.ts";
import { createOutbox } from "./index.ts";

const ID = "00000000-0000-7000-8000-00000000000";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let client: pg.Client;
    before(async () => {
      server = await startPostgres({ version });
      client = new pg.Client(server.url);
      await client.connect();
      for (const payload of ["text", "bytea"] as const) {
        const table = { schema: payload === "text" ? "texts" : "bytes", table: "outbox" };
        await client.query(managedTableSql({ table, payload, partition: "1 day", wakeUp: true }));
      }
    });
    after(async () => {
      await client.end();
      await server[Symbol.asyncDispose]();
    });

    const inTransaction = async <T>(work: () => Promise<T>): Promise<T> => {
      await client.query("begin");
      const result = await work();
      await client.query("commit");
      return result;
    };

    for (const schema of ["texts", "bytes"]) {
      test(`F5 D9 ${schema}.outbox: single events and many are written in order, each id once`, async () => {
        const outbox = createOutbox({ table: `${schema}.outbox`, trace: () => null });
        const event = (n: number) => ({
          id: `${ID}${n}`,
          type: "order.placed",
          key: "o-1",
          payload: { n, text: `grün "${n}"` },
          headers: { tenant: `t${n}` },
          correlationId: `c-${n}`,
        });
        assert.equal(await inTransaction(() => outbox.write(client, event(1))), 1);
        assert.equal(await inTransaction(() => outbox.write(client, event(1))), 0);
        assert.equal(await inTransaction(() => outbox.write(client, [event(1), event(2), event(2), event(3)])), 2);
        await client.query("begin");
        assert.equal(await outbox.write(client, event(4)), 1);
        await client.query("rollback");
        const { rows } = await client.query(
          `select event_id, event_type, event_key, payload, headers, correlation_id from ${schema}.outbox order by id`,
        );
        const seen = rows.map(({ payload, ...row }) => ({ ...row, payload: JSON.parse(String(payload)) }));
        const expected = [1, 2, 3].map((n) => {
          const { id, type, key, payload, headers, correlationId } = event(n);
          return { event_id: id, event_type: type, event_key: key, payload, headers, correlation_id: correlationId };
        });
        assert.deepEqual(
          seen,
          expected.map(({ payload, ...row }) => ({ ...row, payload })),
        );
      });
    }

    test("F5 D9 a writer needs only the right INSERT", async () => {
      await client.query(`create role scribe; grant usage on schema texts to scribe;
        grant insert on texts.outbox to scribe`);
      await client.query("begin");
      await client.query("set local role scribe");
      const outbox = createOutbox({ table: "texts.outbox" });
      assert.equal(await outbox.write(client, { type: "a", payload: 1 }), 1);
      const two = [
        { type: "a", payload: 1 },
        { type: "b", payload: 1 },
      ];
      assert.equal(await outbox.write(client, two), 2);
      await client.query("rollback");
    });

    test("F5 D9 a partition without the unique index is reported before an event is written twice", async () => {
      await client.query(
        managedTableSql({
          table: { schema: "lax", table: "outbox" },
          payload: "text",
          partition: "1 day",
          wakeUp: false,
        }),
      );
      await client.query(
        "create table lax.far partition of lax.outbox for values from ('2100-01-01') to ('2100-02-01')",
      );
      await client.query("begin");
      const write = createOutbox({ table: "lax.outbox" }).write(client, { type: "a", payload: 1 });
      await assert.rejects(write, /no unique index on event_id/);
      await client.query("rollback");
    });
  });
}
