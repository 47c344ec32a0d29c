import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Message } from "../../src/core/event.ts";
import type { Publisher } from "../../src/ports/publisher.ts";
import { memoryPublisher } from "../../src/publishers/memory/memory-publisher.ts";
import { TransactionBroker } from "../../src/publishers/memory/memory-transaction-broker.ts";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { ORDERS } from "./outbox-tables.ts";
import { type LiveRelay, type Scene, withScene } from "./scene.ts";
import { sinkPublisher } from "./sink-publisher.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18 });
});
after(() => server[Symbol.asyncDispose]());

const trigger = (time: "before" | "after", body: string, condition = "") => `
create function orders.meddle() returns trigger language plpgsql as $f$ begin ${body} end $f$;
create trigger meddle ${time} update on orders.outbox for each row ${condition} execute function orders.meddle()`;
const NO_TRIGGER = "drop trigger meddle on orders.outbox";

/** What keeps the relay from marking a row, and its end. */
const WORLDS: readonly (readonly [what: string, begin: string, end: string])[] = [
  ["a trigger that returns NULL", trigger("before", "return null;"), NO_TRIGGER],
  [
    "a trigger that resets the flag before the update",
    trigger("before", "new.published := false; new.published_at := null; return new;"),
    NO_TRIGGER,
  ],
  [
    "a trigger that resets the flag after the update",
    trigger(
      "after",
      "update orders.outbox set published = false, published_at = null where id = new.id and published; return null;",
    ),
    NO_TRIGGER,
  ],
  ["a trigger that raises an error", trigger("before", "raise exception 'no % today', new.aggregate_id;"), NO_TRIGGER],
  [
    "a constraint that the mark violates",
    "alter table orders.outbox add constraint never check (published_at is null)",
    "alter table orders.outbox drop constraint never",
  ],
  [
    "row-level security that lets the role read and not update",
    "alter table orders.outbox enable row level security; create policy p on orders.outbox for select using (true)",
    "alter table orders.outbox disable row level security",
  ],
];

const COUNT = 300;

async function insertMany({ stage }: Scene, count: number): Promise<void> {
  await stage.sql(
    `insert into orders.outbox (aggregate_id, event_type, payload)
     select 'key-' || n % 20, 'order.placed', '{}' from generate_series(1, $1::int) n`,
    [count],
  );
}

const stops = (live: LiveRelay) => live.waitFor("SourceBroken", ({ code }) => code === "ROW_UNMARKED");
const unmarked = async ({ stage }: Scene) =>
  Number((await stage.sql<{ n: string }>("select count(*) as n from orders.outbox where published_at is null"))[0]?.n);

/** The ids of all arrivals; fails when one came twice. */
async function arrivedOnce({ sink }: Scene): Promise<string[]> {
  const ids = (await sink.arrivals()).map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, `${ids.length - new Set(ids).size} events were sent twice`);
  return ids;
}

describe("rows that cannot be marked", { concurrency: 3 }, () => {
  for (const [what, begin, end] of WORLDS) {
    test(`H1 ${what}: no event is sent twice, the source says why it stops, and continues once it may`, async () => {
      await withScene(server, [ORDERS], async (scene) => {
        const { arrived, insert, relay, stage } = scene;
        await stage.sql(begin);
        await insertMany(scene, COUNT);
        const first = await relay();
        const { reason } = await stops(first);
        assert.match(reason, /orders\.outbox->sink .*marked.*trigger.*row-level security/s);
        assert.equal(first.told("EventVanished").length, 0);
        await until("nothing is in flight", () => first.events.at(-1)?.name !== "IntentRelayed");
        await first.stop();
        const before = (await arrivedOnce(scene)).length;
        // Another process knows of them: it sends none of them again.
        const second = await relay();
        await stops(second);
        await insert(ORDERS, [{ key: "key-1" }]);
        assert.ok((await arrivedOnce(scene)).length >= before);
        await stage.sql(end);
        await until("all rows are marked", async () => (await unmarked(scene)) === 0);
        await second.waitFor("SourceRecovered");
        const ids = (await stage.sql<{ id: string }>("select id from orders.outbox")).map(({ id }) => id);
        await arrived(ids);
        assert.equal((await arrivedOnce(scene)).length, COUNT + 1);
      });
    });
  }

  test("H1 nor is it sent twice where delivery is exactly once", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const { relay, stage } = scene;
      await stage.sql(trigger("before", "return null;"));
      await insertMany(scene, COUNT);
      const broker = new TransactionBroker<Message>({ nowMs: () => performance.now() });
      const arrivals: string[] = [];
      broker.onVisible((messages) => void arrivals.push(...messages.map(({ event }) => event.id)));
      const destinations = () => ({ sink: memoryPublisher({ transactions: broker }) });
      const first = await relay({ destinations: destinations() });
      await stops(first);
      await first.stop();
      const second = await relay({ destinations: destinations() });
      await stops(second);
      await stage.sql(NO_TRIGGER);
      await until("all rows are marked", async () => (await unmarked(scene)) === 0);
      assert.deepEqual([arrivals.length, new Set(arrivals).size], [COUNT, COUNT]);
    });
  });

  test("H1 a few rows that cannot be marked are sent once and stop nobody else", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const { arrived, insert, relay, stage } = scene;
      await stage.sql(trigger("before", "return null;", "when (new.aggregate_id = 'bad')"));
      const bad = await insert(ORDERS, [{ key: "bad" }, { key: "bad" }]);
      const live = await relay();
      await arrived(bad);
      await stops(live);
      const good = await insert(ORDERS, [{ key: "bad", headers: { a: 1 } }, { key: "a" }, { key: "b" }]);
      await arrived(good);
      await until("the others are marked", async () => (await unmarked(scene)) === 3);
      assert.equal((await arrivedOnce(scene)).length, 5);
    });
  });

  test("H1 a few rows whose update raises an error, at the commit too, are sent once and stop nobody else", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const { arrived, insert, relay, stage } = scene;
      await stage.sql(`${trigger("before", "raise exception 'no %', new.aggregate_id;", "when (new.aggregate_id = 'bad')")};
        create function orders.late() returns trigger language plpgsql as $f$ begin
          if new.aggregate_id = 'late' then raise exception 'too late'; end if; return null; end $f$;
        create constraint trigger late after update on orders.outbox deferrable initially deferred
          for each row execute function orders.late()`);
      await insertMany(scene, COUNT);
      const bad = await insert(ORDERS, [{ key: "bad" }, { key: "late" }, { key: "bad" }]);
      const live = await relay({ lanes: 1 });
      await arrived(bad);
      const { reason } = await stops(live);
      assert.match(reason, /fails.* Ids: .*The database: (?:no bad|too late)/s);
      await until("the others are marked", async () => (await unmarked(scene)) === 3);
      await stage.sql("drop trigger late on orders.outbox");
      await until("what may be marked is marked, beside what may not", async () => (await unmarked(scene)) === 2);
      await live.stop();
      const second = await relay({ lanes: 1 });
      await stops(second);
      await stage.sql(NO_TRIGGER);
      await until("all rows are marked", async () => (await unmarked(scene)) === 0);
      await second.waitFor("SourceRecovered");
      assert.equal((await arrivedOnce(scene)).length, COUNT + 3);
    });
  });

  test("H1 one row that somebody keeps locked: all others are marked meanwhile, and it is once it is free", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const { relay, stage } = scene;
      await insertMany(scene, COUNT);
      const client = await stage.pool.connect();
      await client.query("begin");
      await client.query("select from orders.outbox limit 1 for update");
      const live = await relay({ lanes: 1 });
      await until("all others are marked", async () => (await unmarked(scene)) === 1);
      await client.query("rollback");
      client.release();
      await until("it is marked too", async () => (await unmarked(scene)) === 0);
      assert.equal((await arrivedOnce(scene)).length, COUNT);
      assert.equal(live.told("SourceBroken").length, 0);
    });
  });

  test("H1 rows that take long to mark are marked in smaller writes, and a busy database is reported", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const { relay, stage } = scene;
      await stage.sql(trigger("before", "perform pg_sleep(0.02); return new;"));
      await insertMany(scene, COUNT);
      // A settle may take two seconds here, hence a hundred rows: all of them at once are always too many.
      const live = await relay({ lanes: 1 });
      const delay = await live.waitFor("SettleDelayed");
      assert.equal(delay.code, "DATABASE_BUSY");
      await until("all rows are marked", async () => (await unmarked(scene)) === 0);
      assert.equal((await arrivedOnce(scene)).length, COUNT);
      await stage.sql(`create or replace function orders.meddle() returns trigger language plpgsql
        as $f$ begin perform pg_sleep(60); return new; end $f$`);
      await insertMany(scene, 1);
      await live.waitFor("SourceBroken", ({ code }) => code === "DATABASE_BUSY");
    });
  });

  test("H1 row-level security that may hide rows is reported until a policy shows them all", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const { arrived, insert, relay, stage } = scene;
      await stage.sql(`alter table orders.outbox enable row level security;
        create policy mine on orders.outbox using (aggregate_id = 'a')`);
      const [shown, hidden] = await insert(ORDERS, [{ key: "a" }, { key: "b" }]);
      const live = await relay();
      await arrived([shown!]);
      const { code, reason } = await live.waitFor("SourceWarned");
      assert.equal(code, "ROWS_HIDDEN");
      assert.match(reason, /orders\.outbox is active for the role relay_scene_\d+ \(policies: mine\): hidden rows/);
      await stage.sql(`create policy outbox_relay on orders.outbox to ${stage.role} using (true) with check (true)`);
      await live.waitFor("SourceWarningEnded", (event) => event.code === "ROWS_HIDDEN");
      await arrived([hidden!]);
    });
  });

  test("H1 rows that others delete or mark while they are in flight are gone, and nothing is broken", async () => {
    await withScene(server, [ORDERS], async (scene) => {
      const { insert, relay, sink, stage } = scene;
      const gate = Promise.withResolvers<void>();
      const publisher = sinkPublisher(sink.port);
      const late: Publisher = {
        ...publisher,
        publish: async (...parts) => gate.promise.then(() => publisher.publish(...parts)),
      };
      const live = await relay({
        destinations: { sink: late },
        timing: { leaseMs: 300_000, publishTimeoutMs: 200_000 },
      });
      const [deleted, marked] = await insert(ORDERS, [{ key: "a" }, { key: "b" }]);
      await until(
        "both are in flight",
        () => live.told("RunEnded").reduce((sum, { claimed }) => sum + claimed, 0) === 2,
      );
      await stage.sql("delete from orders.outbox where id = $1", [deleted]);
      await stage.sql("update orders.outbox set published = true, published_at = now() where id = $1", [marked]);
      gate.resolve();
      for (const id of [deleted, marked]) await live.waitFor("EventVanished", ({ recordId }) => recordId === id);
      assert.equal(live.told("SourceBroken").length, 0);
    });
  });
});
