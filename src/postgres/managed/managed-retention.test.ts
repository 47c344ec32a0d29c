import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { assertWithin } from "../../../test/servers/pace.ts";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { until } from "../../../test/servers/until.ts";
import type { TableName } from "../identifiers.ts";
import { migrateUp } from "../migrations/migrate.ts";
import { type Database, openDatabase } from "../pool.ts";
import { BY_INDEX, unreadSql } from "./log-needs.ts";
import { pruneManaged } from "./managed-retention.ts";
import { managedTableSql } from "./managed-table.sql.ts";

const WEEK_MS = 7 * 86_400_000;
const RETENTION = { olderThanMs: WEEK_MS, lagMaxMs: null };
/** A time long past, for which there is a partition. */
const OLD = "2020-01-01 12:00Z";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    let admin: pg.Client;
    before(async () => {
      server = await startPostgres({ version });
      database = openDatabase({ url: server.url });
      admin = new pg.Client(server.url);
      await admin.connect();
      await migrateUp(database);
    });
    after(async () => {
      await admin.end();
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    const oldPartition = (schema: string) =>
      admin.query(`create table if not exists ${schema}.old partition of ${schema}.outbox
          for values from ('2020-01-01') to ('2020-01-02');
        create unique index if not exists old_event on ${schema}.old (event_id)`);
    const create = async (schema: string): Promise<TableName> => {
      const table = { schema, table: "outbox" };
      await admin.query(managedTableSql({ table, payload: "text", partition: "1 day", wakeUp: false }));
      await oldPartition(schema);
      return table;
    };
    /** A subscriber with this many lanes, all at the position `from`. */
    const subscribe = async (schema: string, from: string | null, lanes = 1, name = `${schema}->out`) => {
      await admin.query(
        `insert into outbox_relay.pipelines (name, source_schema, source_table, lanes) values ($1, $2, 'outbox', $3)`,
        [name, schema, lanes],
      );
      await admin.query(
        `insert into outbox_relay.lanes (pipeline, lane, position) select $1, lane, case when $3::text is not null then
           jsonb_build_object('from', $3::text, 'to', null, 'after', '0', 'ahead', '') end
         from generate_series(0, $2::int - 1) lane`,
        [name, lanes, from],
      );
    };
    const moveTo = (schema: string, from: string, lane: number | null = null) =>
      admin.query(
        `update outbox_relay.lanes set position = jsonb_build_object('from', $2::text, 'to', null, 'after', '0', 'ahead', '')
         where pipeline = $1 || '->out' and ($3::int is null or lane = $3)`,
        [schema, from, lane],
      );
    const snapshot = async (): Promise<string> =>
      (await admin.query<{ now: string }>("select pg_current_snapshot()::text as now")).rows[0]?.now ?? "";
    const insert = (schema: string, type: string, at = OLD) =>
      `insert into ${schema}.outbox (event_type, event_key, payload, created_at) values ('${type}', 'k', '1', '${at}')`;
    const typesIn = async (schema: string) =>
      (await admin.query<{ t: string }>(`select event_type as t from ${schema}.outbox order by id`)).rows.map(
        ({ t }) => t,
      );
    const isThere = async (schema: string) =>
      (await admin.query("select to_regclass($1) as at", [`${schema}.old`])).rows[0]?.at !== null;
    const client = async (): Promise<pg.Client> => {
      const made = new pg.Client(server.url);
      await made.connect();
      return made;
    };
    /** The same database, with something that happens just before the lock is asked for. */
    const withMoment = (work: () => Promise<unknown>): Database => {
      let connects = 0;
      const connect = async () => {
        connects += 1;
        if (connects === 3) await work();
        return await database.pool.connect();
      };
      return { ...database, pool: { connect } as unknown as pg.Pool };
    };

    /** The same database, with something that happens just before a statement that begins so. */
    const beforeStatement = (start: string, work: () => Promise<void>): Database => {
      const connect = async () => {
        const connection = await database.pool.connect();
        const query = async (config: pg.QueryConfig) => {
          if (config.text.startsWith(start)) await work();
          return await connection.query(config);
        };
        return { query, release: (destroy: boolean) => connection.release(destroy) };
      };
      return { ...database, pool: { connect } as unknown as pg.Pool };
    };

    test("D9 F4 what everybody has read is dropped, what is younger stays, what one has not read stays", async () => {
      const table = await create("read");
      await admin.query(insert("read", "old"));
      await admin.query(insert("read", "young", new Date().toISOString()));
      await subscribe("read", await snapshot());
      await subscribe("read", "1:1:", 1, "read->slow");
      const held = await pruneManaged(database, table, RETENTION);
      assert.equal(held.dropped, 0);
      assert.match(
        held.findings[0]?.what ?? "",
        /read\.old .+ but kept: unread by read->slow \(last progress: never\)/,
      );
      assert.deepEqual(await typesIn("read"), ["old", "young"]);
      await admin.query("delete from outbox_relay.pipelines where name = 'read->slow'");
      assert.deepEqual(await pruneManaged(database, table, RETENTION), { dropped: 1, deleted: 0, findings: [] });
      assert.deepEqual(await typesIn("read"), ["young"]);
    });

    test("D9 F4 a subscriber that never began keeps everything; an idle lane keeps nothing", async () => {
      const table = await create("lanes");
      await admin.query(insert("lanes", "old"));
      await subscribe("lanes", null, 8);
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 0);
      const now = await snapshot();
      const [lane] = (
        await admin.query(`select mod(hashtextextended('k' collate "C", 0) & 9223372036854775807, 8)::int as lane`)
      ).rows;
      await moveTo("lanes", now, (lane.lane + 1) % 8);
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 0);
      await moveTo("lanes", now, lane.lane);
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 1);
    });

    test("D9 F4 beyond the limit a dead subscriber keeps nothing, and what it lost is reported and recorded", async () => {
      const table = await create("dead");
      await admin.query(`${insert("dead", "a")}; ${insert("dead", "b")}`);
      await subscribe("dead", "1:1:");
      const limit = { ...RETENTION, lagMaxMs: 2 * WEEK_MS };
      const far = { ...RETENTION, lagMaxMs: 100 * 365 * 86_400_000 };
      assert.equal((await pruneManaged(database, table, far)).dropped, 0);
      const { dropped, findings } = await pruneManaged(database, table, limit);
      assert.equal(dropped, 1);
      assert.equal(findings[0]?.severity, "error");
      assert.match(findings[0]?.what ?? "", /^rows were dropped unread: 2 events of dead\.outbox for dead->out/);
      const { rows } = await admin.query(
        "select pipeline, detail from outbox_relay.technical_events where name = 'EventsDroppedUnread'",
      );
      assert.equal(rows[0]?.pipeline, "dead->out");
      assert.deepEqual([rows[0]?.detail.rows, rows[0]?.detail.partition], [2, "dead.old"]);
    });

    test("D9 prune against an open writer gives up at once, and the row is not lost", async () => {
      const table = await create("open");
      await subscribe("open", await snapshot());
      const writer = await client();
      await writer.query("begin");
      await writer.query(insert("open", "late"));
      await moveTo("open", await snapshot());
      const startMs = performance.now();
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 0);
      await assertWithin(performance.now() - startMs, 1_000, "giving up");
      await writer.query("commit");
      // Its transaction was open in the snapshot up to which the lane has read: the row is still to come.
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 0);
      assert.deepEqual(await typesIn("open"), ["late"]);
      await moveTo("open", await snapshot());
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 1);
      await writer.end();
    });

    test("D9 prune does not wait in front of other writers behind a long transaction", async () => {
      const table = await create("queue");
      const [long, short] = [await client(), await client()];
      await long.query("begin");
      await long.query(insert("queue", "long", new Date().toISOString()));
      let slowestMs = 0;
      let isOver = false;
      const writing = (async () => {
        while (!isOver) {
          const startMs = performance.now();
          await short.query(insert("queue", "short", new Date().toISOString()));
          slowestMs = Math.max(slowestMs, performance.now() - startMs);
        }
      })();
      for (let round = 0; round < 5; round += 1) {
        assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 0);
      }
      isOver = true;
      await writing;
      await assertWithin(slowestMs, 500, "the slowest insert");
      await long.query("commit");
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 1);
      assert.ok((await typesIn("queue")).includes("long"));
      await Promise.all([long.end(), short.end()]);
    });

    const moments: Readonly<Record<string, (writer: pg.Client, schema: string) => Promise<unknown>>> = {
      "commits a row that was open at the look": (writer) => writer.query("commit"),
      "writes a row and commits": (writer, schema) => writer.query(`rollback; ${insert(schema, "late")}`),
      "writes a row and stays open": (writer, schema) => writer.query(insert(schema, "later")),
      "writes a row inside a savepoint and commits": (writer, schema) =>
        writer.query(`rollback; begin; savepoint a; ${insert(schema, "late")}; release savepoint a; commit`),
      "leaves a prepared transaction": (writer) => writer.query(`prepare transaction 'kept'`),
    };
    for (const [what, moment] of Object.entries(moments)) {
      test(`D9 a writer that ${what} between the look and the lock loses nothing`, async () => {
        const schema = `m${Object.keys(moments).indexOf(what)}`;
        const table = await create(schema);
        await subscribe(schema, await snapshot());
        const writer = await client();
        await writer.query("begin");
        await writer.query(insert(schema, "late"));
        await admin.query("select pg_current_xact_id()"); // A snapshot names only what a later one outlived.
        const through = withMoment(() => moment(writer, schema));
        assert.equal((await pruneManaged(through, table, RETENTION)).dropped, 0);
        await (what.includes("prepared") ? writer.query("commit prepared 'kept'") : writer.query("commit"));
        assert.ok((await typesIn(schema)).includes("late"));
        await moveTo(schema, await snapshot());
        assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 1);
        await writer.end();
      });
    }

    test("D9 a writer that comes while the partition is dropped waits for a moment, and its row goes to DEFAULT", async () => {
      const table = await create("last");
      await subscribe("last", await snapshot());
      const writer = await client();
      const { rows } = await writer.query("select pg_backend_pid() as pid");
      let writing: Promise<unknown> = Promise.resolve();
      const atDrop = beforeStatement("drop table", async () => {
        writing = writer.query(insert("last", "late"));
        const sql = "select from pg_locks where pid = $1 and not granted";
        const isWaiting = async () => (await admin.query(sql, [rows[0]?.pid])).rowCount === 1;
        await until("the writer waits", isWaiting);
      });
      assert.equal((await pruneManaged(atDrop, table, RETENTION)).dropped, 1);
      await writing;
      assert.deepEqual(await typesIn("last"), ["late"]);
      await writer.end();
    });

    test("D9 a writer that rolls back between the look and the lock hinders nothing", async () => {
      const table = await create("undone");
      await subscribe("undone", await snapshot());
      const writer = await client();
      await writer.query("begin");
      await writer.query(insert("undone", "never"));
      const pruned = await pruneManaged(
        withMoment(() => writer.query("rollback")),
        table,
        RETENTION,
      );
      assert.equal(pruned.dropped, 1);
      await writer.end();
    });

    test("D9 a lane that is set back, and a subscriber that comes, between the look and the lock keep the partition", async () => {
      const table = await create("back");
      await admin.query(insert("back", "old"));
      await subscribe("back", await snapshot());
      const back = withMoment(() => moveTo("back", "3:3:"));
      assert.equal((await pruneManaged(back, table, RETENTION)).dropped, 0);
      await moveTo("back", await snapshot());
      const joined = withMoment(() => subscribe("back", null, 1, "back->new"));
      assert.equal((await pruneManaged(joined, table, RETENTION)).dropped, 0);
      await admin.query("delete from outbox_relay.pipelines where name = 'back->new'");
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 1);
    });

    test("D9 two relays that prune at once, and a detached partition cause no error", async () => {
      const table = await create("twice");
      const both = await Promise.all([1, 2].map(() => pruneManaged(database, table, RETENTION)));
      assert.ok(both[0]!.dropped + both[1]!.dropped <= 1);
      await oldPartition("twice");
      const detached = withMoment(() => admin.query("alter table twice.outbox detach partition twice.old"));
      assert.equal((await pruneManaged(detached, table, RETENTION)).dropped, 0);
      assert.ok(await isThere("twice"));
    });

    test("D9 old rows of DEFAULT go in small steps once they are read, unread ones only beyond the limit, which is reported", async () => {
      const table = await create("rest");
      await admin.query("drop table rest.old");
      await admin.query(`insert into rest.outbox (event_type, payload, created_at)
        select 'old', '1', '2020-01-01' from generate_series(1, 2500)`);
      await subscribe("rest", await snapshot(), 4);
      await admin.query(insert("rest", "unread"));
      await admin.query(insert("rest", "young", new Date().toISOString()));
      assert.deepEqual(await pruneManaged(database, table, RETENTION), { dropped: 0, deleted: 2500, findings: [] });
      assert.deepEqual(await typesIn("rest"), ["unread", "young"]);
      const { deleted, findings } = await pruneManaged(database, table, { ...RETENTION, lagMaxMs: WEEK_MS });
      assert.equal(deleted, 1);
      assert.match(findings[0]?.what ?? "", /^rows were dropped unread: 1 events in DEFAULT of rest\.outbox/);
      assert.deepEqual(await typesIn("rest"), ["young"]);
    });

    test("D9 a partition that was read to its end is known by its index, however large", async () => {
      const table = await create("large");
      await admin.query(`insert into large.outbox (event_type, event_key, payload, created_at)
        select 'a', n::text, '1', '${OLD}' from generate_series(1, 20000) n; analyze large.old`);
      await subscribe("large", await snapshot(), 8);
      await admin.query("begin");
      for (const [name, value] of Object.entries(BY_INDEX)) await admin.query(`set local ${name} = ${value}`);
      const sql = unreadSql(database.tables, "large.old", { name: "large->out", lanes: 8 }, 1);
      const { rows } = await admin.query(`explain (analyze, costs off, timing off) ${sql}`);
      await admin.query("commit");
      const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
      assert.match(plan, /Index Scan using .+ on old t/);
      assert.doesNotMatch(plan, /Seq Scan on old|Rows Removed/);
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 1);
    });

    test("D9 a reading in the middle keeps what lies behind it, and nothing else", async () => {
      const table = await create("middle");
      await admin.query(`${insert("middle", "a")}; ${insert("middle", "b")}`);
      await subscribe("middle", "1:1:");
      const place = (after: number, to: string) =>
        admin.query(
          `update outbox_relay.lanes set position = jsonb_build_object('from', '1:1:', 'to', $2::text, 'after', $1::text,
             'ahead', '') where pipeline = 'middle->out'`,
          [after, to],
        );
      const now = await snapshot();
      await place(1, now);
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 0);
      await place(2, "3:3:");
      assert.equal((await pruneManaged(database, table, RETENTION)).dropped, 0);
      await place(2, now);
      const back = withMoment(() => place(1, now));
      assert.equal((await pruneManaged(back, table, RETENTION)).dropped, 0);
      await place(2, now);
      const onwards = withMoment(() => moveTo("middle", now));
      assert.equal((await pruneManaged(onwards, table, RETENTION)).dropped, 1);
    });

    test("D9 writers that come and go in every way while partitions are dropped under them lose no row", async (t) => {
      const table = await create("storm");
      const days = Array.from({ length: 50 }, (_, n) => new Date(Date.UTC(2021, 0, 1 + n)).toISOString());
      for (const [n, day] of days.entries()) {
        const next = new Date(Date.parse(day) + 86_400_000).toISOString();
        await admin.query(
          `create table storm.d${n} partition of storm.outbox for values from ('${day}') to ('${next}')`,
        );
      }
      let from = await snapshot();
      await subscribe("storm", from);
      const committed = new Set<string>();
      const waits: number[] = [];
      let round = 0;
      const write = async (number: number) => {
        const writer = await client();
        for (let n = 0; round < days.length; n += 1) {
          const type = `${number}-${n}`;
          await writer.query("begin");
          if (n % 3 === 0) await writer.query("savepoint a");
          const startMs = performance.now();
          await writer.query(insert("storm", type, days[round]));
          waits.push(performance.now() - startMs);
          // Some stay open over several looks.
          if (n % 4 === 0) await writer.query(`select pg_sleep(${(number * 7 + n) % 60} / 1000.0)`);
          await writer.query(n % 5 === 0 ? "rollback" : "commit");
          if (n % 5 !== 0) committed.add(type);
        }
        await writer.end();
      };
      const writers = [1, 2, 3, 4].map(write);
      const read = new Set<string>();
      const catchUp = async () => {
        const { rows } = await admin.query<{ types: string[] | null; now: string }>(
          `select pg_current_snapshot()::text as now, array_agg(event_type) as types from storm.outbox
           where not pg_visible_in_snapshot(xid, $1::pg_snapshot)`,
          [from],
        );
        for (const type of rows[0]?.types ?? []) read.add(type);
        from = rows[0]?.now ?? "";
        await moveTo("storm", from);
      };
      let dropped = 0;
      for (; round < days.length; round += 1) {
        await catchUp();
        dropped += (await pruneManaged(database, table, RETENTION)).dropped;
      }
      await Promise.all(writers);
      await catchUp();
      assert.deepEqual(
        [...committed].filter((type) => !read.has(type)),
        [],
      );
      assert.ok(dropped > 10 && committed.size > 100, `${dropped} dropped, ${committed.size} written`);
      waits.sort((a, b) => a - b);
      const [p50, p99, most] = [0.5, 0.99, 1].map((part) => waits[Math.ceil(waits.length * part) - 1]?.toFixed(0));
      const figures = `an insert waited ${p50} ms (p50), ${p99} (p99), ${most} (most) beside prunes without a pause`;
      t.diagnostic(`${dropped} dropped, ${committed.size} written, ${figures}`);
    });
  });
}
