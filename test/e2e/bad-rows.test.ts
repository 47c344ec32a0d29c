import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { crc32 } from "node:zlib";
import { quoteTable } from "../../src/postgres/identifiers.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { withScene } from "./scene.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

const MEBIBYTE = 1024 * 1024;

describe("rows and names that nobody expects", { concurrency: 3 }, () => {
  test("A17: schemas and a table with quotes, a semicolon and dots in their names are only names", async () => {
    const hostile = { ...BILLING, schema: `o"; drop schema "x; --`, table: `out'box."$1 \\ ü` };
    const relaySchema = `re"lay; drop schema public cascade; --'$$`;
    await withScene(
      server,
      [hostile],
      async ({ arrived, insert, relay, sink, stage }) => {
        await sink.order({ kind: "reject", key: "bad" });
        const live = await relay();
        const ids = await insert(hostile, [{ key: `k'";--` }, { key: null }]);
        assert.deepEqual((await arrived(ids)).toSorted(), ids.toSorted());
        const [dead] = await insert(hostile, [{ key: "bad" }]);
        await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === dead);
        await until("all but the dead one are marked", async () => {
          const [row] = await stage.sql<{ left: string }>(
            `select count(*) filter (where processed_at is null) as left from ${quoteTable(hostile)}`,
          );
          return row?.left === "1";
        });
      },
      { relaySchema },
    );
  });

  test("A16: a payload of any bytes arrives as it is: NUL, invalid UTF-8, none at all, many", async () => {
    await withScene(server, [BILLING], async ({ arrived, insert, relay, sink }) => {
      const payloads = [
        Buffer.from([0, 1, 0]),
        Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0x80]),
        Buffer.alloc(0),
        Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
        Buffer.alloc(5 * MEBIBYTE, Buffer.from([7, 0, 255])),
      ];
      await relay();
      const ids = await insert(
        BILLING,
        payloads.map((payload, at) => ({ key: `k${at}`, payload })),
      );
      await arrived(ids);
      const byId = new Map((await sink.arrivals()).map(({ id, payload }) => [id, payload]));
      assert.deepEqual(
        ids.map((id) => [byId.get(id)?.length, crc32(byId.get(id) ?? "")]),
        payloads.map((payload) => [payload.length, crc32(payload)]),
      );
    });
  });

  test("A10: a payload of 100 MB is a dead letter without being loaded; its key's others wait, other keys go on", async () => {
    await withScene(server, [BILLING], async ({ arrived, insert, relay, stage }) => {
      const [huge] = await stage.sql<{ id: string }>(
        `insert into billing.outbox_events (aggregate_id, event_type, payload)
         values ('huge', 'order.placed', convert_to(repeat('x', ${100 * MEBIBYTE}), 'UTF8')) returning id`,
      );
      const rssBefore = process.memoryUsage.rss();
      const live = await relay();
      const others = await insert(BILLING, [{ key: "a" }, { key: null }]);
      await arrived(others);
      const dead = await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === huge?.id);
      assert.match(dead.reason, /104857600 bytes/);
      assert.ok(process.memoryUsage.rss() - rssBefore < 90 * MEBIBYTE, "the payload was loaded");
      const [letter] = await stage.sql<{ bytes: number }>(
        "select octet_length(payload) as bytes from outbox_relay.failed_events",
      );
      assert.equal(letter?.bytes, 100 * MEBIBYTE, "the copy is not whole");
    });
  });

  test("A16: no key, no time and no payload are no obstacle", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      const ids = await insert(ORDERS, [{ key: null }, { payload: null }, { key: "" }]);
      const [timeless] = await stage.sql<{ id: string }>(
        `insert into orders.outbox (aggregate_id, event_type, payload, created_at, correlation_id)
         values ('k', 'order.placed', '1', null, null) returning id`,
      );
      await relay();
      await arrived([...ids, timeless!.id]);
      const arrivals = await sink.arrivals();
      const found = (id: string | undefined) => arrivals.find((arrival) => arrival.id === id);
      assert.equal(found(ids[0])?.key, null);
      assert.equal(found(ids[1])?.payload.length, 0);
      assert.equal(found(ids[2])?.key, "");
      assert.deepEqual(found(timeless?.id)?.headers, { "event-id": timeless?.id });
    });
  });

  test("A10: headers that are too many or no object make a dead letter that says so, and nobody else waits", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`header-${at}`, "x"]));
      const live = await relay();
      const [tooMany, list] = await insert(ORDERS, [
        { key: "a", headers: many },
        { key: "b", headers: ["no", "object"] },
      ]);
      const good = await insert(ORDERS, [{ key: "c", headers: { "trace id": "1\r\n2", n: 1.5, nested: { a: [1] } } }]);
      await arrived(good);
      const first = await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === tooMany);
      const second = await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === list);
      assert.match(first.reason, /10000 headers/);
      assert.match(second.reason, /not a JSON object/);
      const { headers } = (await sink.arrivals()).find(({ id }) => id === good[0])!;
      assert.deepEqual([headers["trace id"], headers.n, headers.nested], ["1\r\n2", "1.5", '{"a":[1]}']);
      const letters = await stage.sql<{ id: string }>("select original_event_id as id from outbox_relay.failed_events");
      assert.deepEqual(letters.map(({ id }) => id).toSorted(), [tooMany!, list!].toSorted());
    });
  });

  test("A10: an event without a type is a dead letter, and mending its row and hold delivers it", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, stage }) => {
      const live = await relay();
      const [typeless] = await insert(ORDERS, [{ key: "k", type: "" }]);
      const [follower] = await insert(ORDERS, [{ key: "k" }]);
      const dead = await live.waitFor("IntentDeadLettered", ({ recordId }) => recordId === typeless);
      assert.match(dead.reason, new RegExp(`${typeless} has no event type`));
      await stage.sql("update orders.outbox set event_type = 'order.placed' where id = $1", [typeless]);
      await stage.sql("update outbox_relay.holds set state = 'retrying', next_at = now() where event_id = $1", [
        typeless,
      ]);
      assert.deepEqual(await arrived([typeless!, follower!]), [typeless, follower]);
      await until("the hold is gone", async () => (await stage.sql("select from outbox_relay.holds")).length === 0);
    });
  });
});
