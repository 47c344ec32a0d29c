import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { BILLING, ORDERS } from "./outbox-tables.ts";
import { type LiveRelay, type Scene, withScene } from "./scene.ts";
import { migrate } from "./stage.ts";

const DEADLOCK_TIMEOUT_MS = 500;

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 18, flags: ["-c", `deadlock_timeout=${DEADLOCK_TIMEOUT_MS}ms`] });
});
after(() => server[Symbol.asyncDispose]());

describe("the database", { concurrency: 3 }, () => {
  test("A7: a database that is killed and comes back after seconds is told, waited for without haste, and loses nothing", async () => {
    await using own = await startPostgres({ version: 18 });
    await withScene(own, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      const live = await relay();
      const ids = await insert(ORDERS, [{ key: "a" }, { key: "b" }]);
      await arrived(ids);
      await own.kill();
      await live.waitFor("SourceBroken", ({ code }) => code === "DATABASE_UNREACHABLE");
      await live.waitFor("InstanceLost");
      await own.restart();
      ids.push(...(await insert(ORDERS, [{ key: "a" }, { key: "b" }, { key: null }])));
      await arrived(ids);
      await allMarked(stage, "orders.outbox");
      const arrivals = await sink.arrivals();
      assert.ok(arrivals.length <= ids.length + 2, "more than the two events on their way at the kill came twice");
      assertCalm(live);
    });
  });

  test("A7: backends that are terminated under the relay cost nothing but a new connection", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      const live = await relay();
      const ids: string[] = [];
      for (let round = 0; round < 5; round += 1) {
        ids.push(...(await insert(ORDERS, [{ key: "a" }, { key: "b" }, { key: null }])));
        await stage.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", [stage.role]);
        await arrived(ids);
      }
      await allMarked(stage, "orders.outbox");
      const order = (await sink.arrivals()).filter(({ key }) => key === "a").map(({ id }) => id);
      const ofA = ids.filter((_, at) => at % 3 === 0);
      assert.deepEqual([...new Set(order)], ofA);
      assertCalm(live);
    });
  });

  test("C5: a deadlock with the application is undone by the server and settled again: no event is lost or sent twice", async () => {
    await withScene(server, [BILLING], async ({ insert, relay, sink, stage }) => {
      const low = "00000000-0000-4000-8000-000000000001";
      const high = "ffffffff-0000-4000-8000-000000000001";
      const app = new pg.Client({ connectionString: stage.url });
      await app.connect();
      try {
        await insert(BILLING, [
          { id: low, key: "k1" },
          { id: high, key: "k2" },
        ]);
        // Both rows in one settle, which locks them in the order of their ids; the application does it the other way.
        await app.query(`set deadlock_timeout = '20s'; begin; ${touch(high)}`);
        const live = await relay({ lanes: 1 });
        await until("the relay waits for the application", async () => await waitsForLock(stage));
        await app.query(touch(low));
        const delayed = await live.waitFor("SettleDelayed");
        assert.match(delayed.reason, /deadlock detected/);
        await app.query("commit");
        await allMarked(stage, "billing.outbox_events");
        assert.equal((await sink.arrivals()).length, 2);
        assert.deepEqual(live.told("LaneFailed"), []);
      } finally {
        await app.end();
      }
    });
  });

  test("C5 H1: a row that the application locks for seconds keeps no other unmarked, also of its lane; nothing is sent twice", async () => {
    await withScene(server, [BILLING], async ({ insert, relay, sink, stage }) => {
      const app = new pg.Client({ connectionString: stage.url });
      await app.connect();
      try {
        const [locked] = await insert(BILLING, [{ key: "locked" }]);
        await app.query(`begin; ${touch(locked!)}`);
        const live = await relay({ lanes: 1 });
        await until("the event is delivered", async () => (await sink.arrivals()).length === 1);
        const others = await insert(
          BILLING,
          Array.from({ length: 40 }, (_, at) => ({ key: `k${at}` })),
        );
        await until("all other events are marked while the row is locked", async () => {
          const marked = await stage.sql("select from billing.outbox_events where processed_at is not null");
          return marked.length === others.length;
        });
        await app.query("commit");
        await allMarked(stage, "billing.outbox_events");
        assert.equal((await sink.arrivals()).length, 41);
        assert.deepEqual(live.told("LaneFailed"), []);
      } finally {
        await app.end();
      }
    });
  });
});

describe("the relay's own schema", { concurrency: 3 }, () => {
  test("A17 G3: a missing schema is named with its cure, and used once it is there", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, stage }) => {
      const live = await relay({ relaySchema: "later" });
      const told = await live.waitFor("SourceBroken", ({ code }) => code === "SCHEMA_MISSING");
      assert.match(told.reason, /later.*migrate up/);
      await migrate(stage.url, "later");
      await stage.sql(
        `grant usage on schema later to ${stage.role}; grant all on all tables in schema later to ${stage.role}`,
      );
      await arrived(await insert(ORDERS, [{}]));
      assertCalm(live);
    });
  });

  test("A17 G3: a newer schema stops the delivery, naming both versions, until the right one is there", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      await stage.sql(
        "insert into outbox_relay.schema_versions (version, name, serves_from) values (99, 'from the future', 99)",
      );
      const ids = await insert(ORDERS, [{}]);
      const live = await relay();
      const told = await live.waitFor("SourceBroken", ({ code }) => code === "SCHEMA_NEWER");
      assert.match(told.reason, /version 99.*supports \d/);
      await until("it is told more than once", () => live.told("SourceBroken").length >= 4);
      assert.deepEqual(await sink.arrivals(), []);
      await stage.sql("delete from outbox_relay.schema_versions where version = 99");
      await arrived(ids);
      assertCalm(live);
    });
  });

  test("A17 G3: an older schema stops the delivery, naming the cure", async () => {
    await withScene(server, [ORDERS], async ({ arrived, insert, relay, sink, stage }) => {
      await stage.sql("alter table outbox_relay.schema_versions rename to hidden");
      const ids = await insert(ORDERS, [{}]);
      const live = await relay();
      const told = await live.waitFor(
        "SourceBroken",
        ({ code }) => code === "SCHEMA_MISSING" || code === "SCHEMA_OLDER",
      );
      assert.match(told.reason, /outbox_relay.*migrate up/);
      assert.deepEqual(await sink.arrivals(), []);
      await stage.sql("alter table outbox_relay.hidden rename to schema_versions");
      await arrived(ids);
      assertCalm(live);
    });
  });
});

const touch = (id: string) => `update billing.outbox_events set aggregate_type = 'touched' where id = '${id}'`;

async function waitsForLock({ sql, role }: Scene["stage"]): Promise<boolean> {
  const waiting = await sql("select from pg_stat_activity where usename = $1 and wait_event_type = 'Lock'", [role]);
  return waiting.length > 0;
}

async function allMarked({ sql }: Scene["stage"], table: "orders.outbox" | "billing.outbox_events"): Promise<void> {
  const pending = table === "orders.outbox" ? "not published" : "processed_at is null";
  await until("all events are marked", async () => (await sql(`select from ${table} where ${pending}`)).length === 0);
}

/** No hot loop: the pauses between the errors grow. */
function assertCalm(live: LiveRelay): void {
  const times = [...live.told("SourceBroken"), ...live.told("LaneFailed")].map(({ timestamp }) => timestamp);
  const busiest = Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length));
  assert.ok(busiest <= 25, `${busiest} errors within a second`);
}
