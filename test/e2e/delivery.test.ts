import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS, type OutboxTable, outboxTableSql } from "./outbox-tables.ts";
import { withScene } from "./scene.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

describe("from the outbox to the destination", { concurrency: 3 }, () => {
  test("A5 A16: every configured schema is polled; topic, key, bytes and headers are the row's", async () => {
    const tables = ["shop", "billing", "stock"].map((schema) => ({ ...ORDERS, schema }));
    await withScene(server, tables, async ({ arrived, insert, relay, sink }) => {
      await relay();
      const ids: string[] = [];
      for (const [at, table] of tables.entries()) {
        const payload = `{ "b" : 1.50,  "a":"ü${at}" }`;
        ids.push(...(await insert(table, [{ key: `key-${at}`, type: `${table.schema}.changed`, payload }])));
      }
      await arrived(ids);
      for (const [at, { schema }] of tables.entries()) {
        const arrival = (await sink.arrivals()).find(({ id }) => id === ids[at]);
        assert.equal(arrival?.topic, `${schema}.changed`);
        assert.equal(arrival?.key, `key-${at}`);
        assert.equal(arrival?.payload.toString(), `{ "b" : 1.50,  "a":"ü${at}" }`);
        assert.equal(arrival?.headers["event-id"], ids[at]);
        assert.match(arrival?.headers["created-at"] ?? "", /^\d{4}-\d\d-\d\dT.*Z$/);
        assert.match(arrival?.headers["correlation-id"] ?? "", /^[0-9a-f-]{36}$/);
      }
    });
  });

  test("A6: every style of flags is discovered, read and set, all flags of a row together", async () => {
    const styles = [["published"], ["published_at"], ["processed_at"], ["delivered_at"], ["published", "published_at"]];
    const tables = styles.map((flags, at): OutboxTable => ({ ...ORDERS, schema: `style_${at}`, flags }));
    await withScene(server, tables, async ({ arrived, insert, relay, stage }) => {
      const ids: string[] = [];
      for (const table of tables) ids.push(...(await insert(table, [{}, {}])));
      // Flags that contradict each other: one says unpublished, so it is.
      await stage.sql(`update style_4.outbox set published = true where id = $1`, [ids.at(-1)]);
      await relay();
      await arrived(ids);
      for (const { schema, flags } of tables) {
        const isSet = flags.map((flag) => (flag === "published" ? flag : `${flag} is not null`)).join(" and ");
        await until(`all flags of ${schema} are set`, async () => {
          const [row] = await stage.sql<{ all: boolean }>(`select bool_and(${isSet}) as all from ${schema}.outbox`);
          return row?.all;
        });
      }
      assert.deepEqual((await arrived(ids)).toSorted(), ids.toSorted());
    });
  });

  test("A6: columns under names of the user's own work by configuration, and two tables of one schema are two sources", async () => {
    await withScene(server, [], async ({ arrived, relay, stage }) => {
      await stage.sql(`
        create schema odd;
        create table odd."Event Queue" ("No" bigint primary key, kind text, subject text, body text, done boolean,
          at timestamptz default clock_timestamp());
        grant usage on schema odd to ${stage.role};
        grant select, update on odd."Event Queue" to ${stage.role};
        insert into odd."Event Queue" values (7, 'odd.happened', 'k', 'body', null)`);
      const columns = {
        id: "No",
        type: "kind",
        key: "subject",
        payload: "body",
        createdAt: "at",
        flags: ["done"],
      };
      await relay({ tables: [{ schema: "odd", table: "Event Queue" }], columns });
      assert.deepEqual(await arrived(["7"]), ["7"]);
      await until("the flag is set", async () => {
        const [row] = await stage.sql<{ done: boolean | null }>(`select done from odd."Event Queue"`);
        return row?.done;
      });
    });
    const both = [ORDERS, { ...ORDERS, table: "outbox_events" }];
    await withScene(server, both, async ({ arrived, insert, relay }) => {
      await relay();
      const ids = [...(await insert(both[0]!, [{}])), ...(await insert(both[1]!, [{}]))];
      assert.deepEqual((await arrived(ids)).toSorted(), ids.toSorted());
    });
  });

  test("C4: an event id that is written twice is delivered once", async () => {
    await withScene(server, [ORDERS], async ({ arrived, relay, sink, stage }) => {
      const id = "00000000-0000-4000-8000-00000000000a";
      const insert = `insert into orders.outbox (id, aggregate_id, event_type, payload)
        values ($1, 'k', 'order.placed', '{}') on conflict do nothing`;
      await stage.sql(insert, [id]);
      await relay();
      await arrived([id]);
      await stage.sql(insert, [id]);
      const [last] = await stage.sql<{ id: string }>(
        "insert into orders.outbox (aggregate_id, event_type, payload) values ('k', 'order.placed', '{}') returning id",
      );
      await arrived([last!.id]);
      assert.equal((await sink.arrivals()).filter((arrival) => arrival.id === id).length, 1);
    });
  });

  test("D4: a row is marked only after the destination acknowledged it", async () => {
    await withScene(server, [{ ...BILLING, flags: ["delivered_at"] }], async ({ insert, relay, sink, stage }) => {
      const ackedAfterMs = 400;
      await sink.order({ kind: "delay", topic: "slow.ack", ms: ackedAfterMs });
      await relay();
      const table = { schema: "billing", table: "outbox_events" };
      const slow = await insert(table, [
        { key: "a", type: "slow.ack" },
        { key: "b", type: "slow.ack" },
      ]);
      const [arrival] = await sink.waitFor(2);
      const marks = () =>
        stage.sql<{ id: string; at: Date }>(
          "select id, delivered_at as at from billing.outbox_events where delivered_at is not null",
        );
      assert.deepEqual(await marks(), [], "marked while the sink had not answered");
      const marked = await until("both rows are marked", async () => {
        const rows = await marks();
        return rows.length === slow.length && rows;
      });
      // One clock on one machine; the sink's log has whole milliseconds.
      for (const { at } of marked) assert.ok(at.getTime() >= arrival!.atMs + ackedAfterMs - 1);
    });
  });

  test("D3: an intent table is a source; the record's id reaches the target, a failure is noted in the record", async () => {
    await withScene(server, [], async ({ arrived, relay, sink, stage }) => {
      await stage.sql(`
        create table public.intents (id uuid primary key default gen_random_uuid(), intent jsonb not null,
          created_at timestamptz not null default now(), delivered_at timestamptz, attempt_count int not null default 0,
          last_error text);
        grant select, update on public.intents to ${stage.role}`);
      await sink.order({ kind: "retry", topic: "NotifyUser", reason: "mailbox is full", count: 1 });
      const [record] = await stage.sql<{ id: string }>(
        `insert into public.intents (intent) values ('{"type": "NotifyUser", "user": 7}') returning id`,
      );
      const live = await relay({ tables: [{ schema: "public", table: "intents" }] });
      await live.waitFor("IntentRelayFailed");
      const read = async () =>
        (
          await stage.sql<{ delivered_at: Date | null; attempt_count: number; last_error: string | null }>(
            "select delivered_at, attempt_count, last_error from public.intents",
          )
        )[0];
      const failed = await until("the failure is noted", async () => {
        const row = await read();
        return row?.attempt_count === 1 && row;
      });
      assert.equal(failed.delivered_at, null);
      assert.match(failed.last_error ?? "", /mailbox is full/);
      await arrived([record!.id]);
      const [arrival] = await sink.arrivals();
      assert.equal(arrival?.headers["event-id"], record?.id);
      assert.equal(arrival?.topic, "NotifyUser");
      await until("the record is marked", async () => (await read())?.delivered_at !== null);
    });
  });

  test("A6: a table that is created while the relay runs is found by its usual name", async () => {
    await withScene(server, [], async ({ arrived, insert, relay, stage }) => {
      const live = await relay({ tables: [{ schema: "late", table: null }] });
      const broken = await live.waitFor("SourceBroken", ({ code }) => code === "TABLE_MISSING");
      assert.match(broken.reason, /late\.\(outbox or outbox_events\)/);
      const late = { ...ORDERS, schema: "late" };
      await stage.sql(outboxTableSql(late));
      await stage.sql(
        `grant usage on schema late to ${stage.role}; grant select, update on late.outbox to ${stage.role}`,
      );
      await live.waitFor("SourceRecovered");
      await arrived(await insert(late, [{}]));
    });
  });
});
