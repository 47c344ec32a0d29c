import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as pauseMs } from "node:timers/promises"; // why: writers of the race differ in length
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { until } from "../../../test/servers/until.ts";
import { type Database, openDatabase } from "../pool.ts";
import { managedTableSql } from "./managed-table.sql.ts";
import { WakeUpListener } from "./wake-up-listener.ts";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    const opened: WakeUpListener[] = [];
    before(async () => {
      server = await startPostgres({ version });
      database = openDatabase({ url: server.url, timeouts: { connectMs: 1_000 } });
    });
    after(async () => {
      await Promise.all(opened.map((bell) => bell.close()));
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    const create = async (schema: string, wakeUp = true) => {
      const table = { schema, table: "outbox" };
      await server.query(managedTableSql({ table, payload: "text", partition: "1 day", wakeUp }));
      return table;
    };
    const bellOf = (schema: string, onRing: () => void, through = database) => {
      const bell = new WakeUpListener(through, { schema, table: "outbox" }, onRing);
      opened.push(bell);
      return bell;
    };
    const write = (schema: string) => server.query(`select ${schema}.outbox_publish('a', null, '1')`);
    const links = async () => {
      const sql = "select count(*)::int as n from pg_stat_activity where application_name = 'outbox-relay doorbell'";
      return (await server.query<{ n: number }>(sql)).rows[0]?.n;
    };

    test("D9 an armed bell rings when an event is written, an unarmed one does not", async () => {
      await create("plain");
      let rings = 0;
      const bell = bellOf("plain", () => {
        rings += 1;
      });
      await write("plain");
      assert.deepEqual(await Promise.all([bell.arm(), bell.arm(), bell.arm()]), [true, true, true]);
      assert.equal(await links(), 1);
      await write("plain");
      await until("it rang", () => rings === 1);
      await bell.disarm();
      await write("plain");
      await bell.arm();
      // An answer on the bell's own connection comes after every notification that was sent before.
      assert.equal(rings, 1);
      await write("plain");
      await until("it rang again", () => rings === 2);
      await bell.close();
      assert.equal(await bell.arm(), false);
      await until("the connection is gone", async () => (await links()) === 0);
    });

    test("D9 a running write keeps the wake-up from being armed: a poll will see the event", async () => {
      await create("inflight");
      const bell = bellOf("inflight", () => {});
      const writer = new pg.Client(server.url);
      await writer.connect();
      await writer.query("begin; select inflight.outbox_publish('a', null, '1')");
      assert.equal(await bell.arm(), false);
      await writer.query("commit");
      assert.equal(await bell.arm(), true);
      await writer.end();
      await bell.close();
    });

    test("D9 one relay sleeps at a time; the next one can when it is gone", async () => {
      await create("shared");
      const [first, second] = [bellOf("shared", () => {}), bellOf("shared", () => {})];
      assert.equal(await first.arm(), true);
      assert.equal(await second.arm(), false);
      await first.disarm();
      assert.equal(await second.arm(), true);
      assert.equal(await first.arm(), false);
      await second.close();
      await until("the lock is free", () => first.arm());
      await first.close();
    });

    test("D9 without trigger or table there is no bell, nor where no notification comes through", async () => {
      await create("silent", false);
      assert.equal(await bellOf("silent", () => {}).arm(), false);
      assert.equal(await bellOf("nowhere", () => {}).arm(), false);
      await create("pooled");
      await server.createDatabase("elsewhere").catch(() => {});
      // Behind a pooler the notification reaches another session. Here it is sent in another database.
      const other = openDatabase({ url: server.databaseUrl("elsewhere") });
      const pool = { options: database.pool.options, connect: () => other.pool.connect() } as unknown as pg.Pool;
      const bell = bellOf("pooled", () => assert.fail("it rang"), { ...database, pool });
      assert.equal(await bell.arm(), false);
      await other.close();
    });

    test("D9 a lost connection and a killed server ring once, and the bell works again afterwards", async () => {
      await create("lost");
      let rings = 0;
      const bell = bellOf("lost", () => {
        rings += 1;
      });
      assert.equal(await bell.arm(), true);
      await server.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outbox-relay doorbell'",
      );
      await until("the loss rings", () => rings === 1);
      await until("it is armed again", () => bell.arm());
      await server.kill();
      await until("the kill rings", () => rings === 2);
      assert.equal(await bell.arm(), false);
      await server.restart();
      await until("it is armed after the restart", () => bell.arm());
      await write("lost");
      await until("a write rings", () => rings >= 3);
      assert.equal(rings, 3);
      await bell.close();
    });

    test("D9 arm, read, wait: whatever moment a writer commits at, nothing waits for a poll", async () => {
      await create("race");
      const reader = new pg.Client(server.url);
      await reader.connect();
      const count = async () =>
        (await reader.query<{ n: number }>("select count(*)::int as n from race.outbox")).rows[0]?.n ?? 0;
      let wake = () => {};
      const bell = bellOf("race", () => wake());
      const total = 3 * 150;
      const writers = [1, 2, 3].map(async (number) => {
        const writer = new pg.Client(server.url);
        await writer.connect();
        for (let n = 0; n < total / 3; n += 1) {
          await writer.query("begin");
          await writer.query("select race.outbox_publish('a', null, '1')");
          if (n % 3 === 0) await pauseMs((n * number) % 4); // why: transactions of different length
          await writer.query("commit");
          await pauseMs((n * 5 * number) % 9); // why: so that the reader sleeps in between
        }
        await writer.end();
      });
      let slept = 0;
      for (let seen = await count(); seen < total; ) {
        const ring = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const isArmed = await bell.arm();
        const now = await count();
        if (isArmed && now === seen) {
          slept += 1;
          const overslept = pauseMs(10_000, "overslept", { ref: false }); // why: no ring within this is a lost one
          assert.notEqual(await Promise.race([ring, overslept]), "overslept");
        }
        await bell.disarm();
        seen = await count();
      }
      await Promise.all(writers);
      await reader.end();
      assert.ok(slept > 10, `slept ${slept} times`);
    });
  });
}
