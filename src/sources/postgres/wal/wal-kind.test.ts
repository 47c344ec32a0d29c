import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { until } from "../../../../test/servers/until.ts";
import {
  aheadOf,
  codeIs,
  ids,
  numbers,
  openStage,
  PLAIN,
  readOn,
  request,
  SPEC,
} from "../../../../test/servers/wal-stage.ts";
import { slotHealth } from "./slot.ts";

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    before(async () => {
      server = await startPostgres({ version, flags: ["-c", "max_replication_slots=40", "-c", "max_wal_senders=40"] });
    });
    after(async () => await server[Symbol.asyncDispose]());

    const setting = async (name: string, value: string) => {
      await server.query(`alter system set ${name} = '${value}'`);
      await server.query("select pg_reload_conf()");
    };

    test("D9 rows come in the order of commits, each transaction in one piece; what was rolled back never comes", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin();
      const other = new pg.Client({ connectionString: server.url });
      await other.connect();
      await other.query(`begin; insert into ${stage.quoted} (id, event_type) values ('late-1', 'T')`);
      await stage.write(1, 2);
      await stage.admin.query(`begin; insert into ${stage.quoted} (id, event_type) values ('never', 'T'); rollback`);
      await other.query(
        `savepoint s; insert into ${stage.quoted} (id, event_type) values ('undone', 'T'); rollback to s`,
      );
      await other.query(`insert into ${stage.quoted} (id, event_type) values ('late-2', 'T'); commit`);
      await other.end();
      await stage.write(3, 3);
      const { rows, head } = await readOn(log, place, 2);
      assert.deepEqual(ids(rows), ["1", "2", "late-1", "late-2", "3"]);
      assert.deepEqual(
        rows.map(({ mark }) => mark),
        [1, 2, 1, 2, 1],
      );
      const orders = rows.map((row) => log.orderOf(row));
      assert.deepEqual(
        orders,
        orders.toSorted((a, b) => (a < b ? -1 : 1)),
      );
      assert.ok(rows[0]?.event.createdAt === null && rows[0].event.key === "k1");
      assert.ok(head.segment.lsn > rows[4]!.segment.lsn && head.mark === 0);
      assert.equal(await log.probe(request(head)), false);
      assert.deepEqual(await log.backlog(request(head), 100), { pending: 0, isEstimate: false, oldestAgeMs: null });
    });

    test("D9 an existing publication may send updates, deletes, truncates, types, origins and other tables", async () => {
      await using stage = await openStage(
        server,
        `${PLAIN}, extra stage_mood, num stage_domain`.replace(/stage_/g, `s${version}_`),
      );
      await stage.admin.query("create table elsewhere (id int primary key, v text)");
      const name = `p "${stage.slot}`;
      await stage.admin.query(`create publication ${pg.escapeIdentifier(name)} for table ${stage.quoted}, elsewhere`);
      const { log, place } = await stage.begin({ publication: name });
      await stage.admin.query(`select pg_replication_origin_create('o${stage.slot}')`);
      await stage.admin.query(`select pg_replication_origin_session_setup('o${stage.slot}')`);
      await stage.admin.query(`begin; insert into elsewhere values (1, 'x');
        insert into ${stage.quoted} (id, event_type, extra, num, headers, created_at)
        values ('a', 'T', 'good', 3, '{"h": 12345678901234567890}', '2026-01-02 03:04:05.678901+02'), ('b', 'T', null, 4, null, 'infinity');
        update ${stage.quoted} set payload = 'changed'; delete from elsewhere; delete from ${stage.quoted};
        insert into ${stage.quoted} (id, event_type) values ('c', 'T'); commit`);
      await stage.admin.query(`truncate ${stage.quoted}`);
      await stage.admin.query(
        `alter table ${stage.quoted} drop column num; alter table ${stage.quoted} add column z int`,
      );
      await stage.write(1, 1);
      const { rows } = await readOn(log, place);
      assert.deepEqual(ids(rows), ["a", "b", "c", "1"]);
      // The row of the other table counts as well: numbers must not depend on who asks.
      assert.deepEqual([rows[0]?.mark, rows[2]?.mark], [2, 4]);
      assert.deepEqual(rows[0]?.event.headers, { h: "12345678901234567890" });
      assert.deepEqual([rows[0]?.event.createdAt, rows[1]?.event.createdAt], ["2026-01-02T01:04:05.678901Z", null]);
      await stage.admin.query(`select pg_replication_origin_session_reset(); drop table elsewhere`);
    });

    test("H1 a publication that leaves rows or needed columns out is refused, with the statement that fixes it", async () => {
      await using stage = await openStage(server);
      const name = `limited ${stage.slot}`;
      const quoted = pg.escapeIdentifier(name);
      await stage.admin.query(`create publication ${quoted} for table ${stage.quoted} where (id <> 'x')`);
      await assert.rejects(stage.begin({ publication: name }), codeIs("TABLE_MISSING", "only rows of"));
      await stage.admin.query(`alter publication ${quoted} set table ${stage.quoted} (id, event_type, payload)`);
      await assert.rejects(stage.begin({ publication: name }), codeIs("COLUMN_MISSING", "key, headers, created_at"));
      await stage.admin.query(`alter publication ${quoted} drop table ${stage.quoted}`);
      await stage.admin.query(`alter publication ${quoted} add table ${stage.quoted}`);
      await stage.begin({ publication: name });
    });

    before(async () => {
      await server.query(
        `create type s${version}_mood as enum ('good', 'bad'); create domain s${version}_domain as int`,
      );
    });

    test("D9 F4 a Debezium outbox keeps its rules: key, type, headers, bytes; a row that is no event has a fault", async () => {
      const columns = `id uuid, aggregatetype varchar(255) not null, aggregateid varchar(255) not null, type varchar(255),
        payload jsonb, tenant text, "timestamp" timestamp default '2026-01-01 00:00:00'`;
      await using stage = await openStage(server, columns);
      const { log, place } = await stage.begin({ preset: "debezium", headerColumns: ["tenant:x-tenant"] });
      const id = randomUUID();
      const insert = `insert into ${stage.quoted} (id, aggregatetype, aggregateid, type, payload, tenant) values`;
      const large = JSON.stringify({ text: "ä".repeat(30_000) });
      await stage.admin.query(`begin; ${insert} ('${id}', 'order', '7', 'OrderPlaced', '{"b": 1,   "a": [1.10]}', 't1');
        ${insert} (null, 'order', '7', 'OrderPlaced', '{}', null); ${insert} (gen_random_uuid(), 'order', '7', null, '{}', null);
        ${insert} (gen_random_uuid(), 'order', '7', 'Large', '${large}', null); delete from ${stage.quoted}; commit`);
      const { rows } = await readOn(log, place);
      const [first, noId, noType, toasted] = rows.map(({ event }) => event);
      assert.deepEqual(first, {
        id,
        lane: 0,
        type: "OrderPlaced",
        key: "7",
        payload: Buffer.from('{"a": [1.10], "b": 1}'),
        headers: { id, aggregatetype: "order", "x-tenant": "t1" },
        correlationId: null,
        createdAt: "2026-01-01T00:00:00Z",
        failures: 0,
        fault: null,
      });
      assert.deepEqual([noId?.fault?.code, noType?.fault?.code], ["EVENT_UNREADABLE", "EVENT_UNREADABLE"]);
      assert.match(noId?.id ?? "", /^[0-9A-F]+\/[0-9A-F]+:2$/);
      assert.equal(toasted?.payload.toString(), `{"text": "${"ä".repeat(30_000)}"}`);
      assert.equal(rows.length, 4);
    });

    test("D9 bytes and headers of a plain table arrive as they are; what is too large or unreadable has a fault", async () => {
      await using stage = await openStage(
        server,
        "id bigint, type text, body bytea, headers json, traceparent text, correlation_id int",
      );
      const { log, place } = await stage.begin({ columns: { payload: "body" } });
      await stage.admin.query(`insert into ${stage.quoted} values (1, 'T', '\\x00ff0a', '{"a":"b"}', '00-1-2-01', 5),
        (2, 'T', decode(repeat('00', 100001), 'hex'), null, null, null), (3, 'T', null, '[]', null, null), (4, 'T', '', null, null, null)`);
      const events = (await readOn(log, place)).rows.map(({ event }) => event);
      assert.deepEqual(events[0]?.payload, Buffer.from([0, 255, 10]));
      assert.deepEqual(events[0]?.headers, { a: "b", traceparent: "00-1-2-01" });
      assert.equal(events[0]?.correlationId, "5");
      assert.deepEqual(
        events.map(({ fault }) => fault?.code),
        [undefined, "EVENT_TOO_LARGE", "EVENT_UNREADABLE", undefined],
      );
      assert.deepEqual([events[1]?.payload.length, events[3]?.payload.length], [100_001, 0]);
    });

    test("D9 F4 events without a table: messages of the prefix, in order with rows; the others are left alone", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin({ messages: { prefix: "it's mine" } });
      const emit = (transactional: boolean, prefix: string, content: string) =>
        stage.admin.query("select pg_logical_emit_message($1, $2, $3)", [transactional, prefix, content]);
      await stage.admin.query("begin");
      await emit(true, "it's mine", '{"id":"m1","type":"M","key":"k"}\n{"a": 1.0}');
      await stage.write(1, 1);
      await emit(true, "other", "x");
      await emit(true, "it's mine", "no event");
      await stage.admin.query("commit");
      await emit(false, "it's mine", '{"id":"m2","type":"M"}\n');
      await stage.write(2, 2);
      const { rows, head } = await readOn(log, place);
      assert.deepEqual(
        rows.map(({ event, mark }) => [event.type, mark, event.fault?.code]),
        [
          ["M", 1, undefined],
          ["T", 2, undefined],
          ["", 4, "EVENT_UNREADABLE"],
          ["M", 1, undefined],
          ["T", 1, undefined],
        ],
      );
      assert.equal(rows[0]?.event.payload.toString(), '{"a": 1.0}');
      // From behind each row on, exactly the later ones come again.
      for (const [at, row] of rows.entries()) {
        await log.rest();
        assert.deepEqual(ids((await readOn(log, row)).rows), ids(rows.slice(at + 1)));
      }
      await log.rest();
      assert.deepEqual((await readOn(log, head)).rows, []);
    });

    test("D9 the function that the recipe shows writes events without a table", async () => {
      await using stage = await openStage(server);
      const recipe = readFileSync(join(import.meta.dirname, "../../../../docs/recipes/wal.md"), "utf8");
      const statement = /^(create function[\s\S]*?)```/m.exec(recipe)?.[1] ?? "";
      await stage.admin.query(`create schema if not exists shop; ${statement}`);
      const { log, place } = await stage.begin({ table: null, messages: { prefix: "shop" } });
      const { rows } = await stage.admin.query(
        `select shop.publish('order.placed', '47', E'{"a": 1,\\n "b": "ä"}', '{"tenant": "acme"}') as id`,
      );
      const [row] = (await readOn(log, place)).rows;
      assert.deepEqual([row?.event.id, row?.event.type, row?.event.key], [rows[0].id, "order.placed", "47"]);
      assert.deepEqual(row?.event.headers, { tenant: "acme" });
      assert.equal(row?.event.payload.toString(), '{"a": 1,\n "b": "ä"}');
    });

    test("F4 D9 a reading resumes in the middle of a transaction, and knows what was settled ahead", async () => {
      await using stage = await openStage(server);
      const { log, place } = await stage.begin();
      await stage.write(1, 100);
      await stage.write(101, 110);
      const { rows } = await readOn(log, place);
      const written = log.encode(rows[49]!, [rows[52]!, rows[53]!, rows[104]!]);
      log.settled([rows[49]!]);
      await until("the place is confirmed", async () => {
        return (await slotHealth(stage.database, stage.slot))?.confirmedLsn === rows[49]!.segment.lsn;
      });
      await log.close();
      const next = stage.kind();
      await next.prepare();
      const checkpoint = await next.decode(written);
      const again = await readOn(next, checkpoint.place);
      assert.deepEqual(ids(again.rows), numbers(51, 110));
      assert.deepEqual(ids(aheadOf(next, checkpoint, again.rows)), ["53", "54", "105"]);
    });

    test("F2 D9 a transaction of 300,000 rows passes through a bounded buffer, and a reader that rests is not cut off", async () => {
      await using stage = await openStage(server);
      await setting("wal_sender_timeout", "1s");
      const { log, place } = await stage.begin();
      await stage.write(1, 300_000, "repeat('x', 200)");
      const pass = await log.open(request(place));
      const one = await until("the first row", async () => (await pass.next(1, 1e9)).rows[0]);
      assert.equal(one.event.id, "1");
      const sender = async () => {
        const { rows } = await server.query("select active_pid as pid from pg_replication_slots where slot_name = $1", [
          stage.slot,
        ]);
        return rows[0]?.pid as number | null;
      };
      const pid = await sender();
      const backlog = await until("the buffer has filled up", async () => {
        const now = await log.backlog(request(place), 10_000);
        return now.pending >= 3_000 && now;
      });
      assert.ok(backlog.pending <= 10_000, String(backlog.pending));
      assert.ok(backlog.oldestAgeMs !== null && backlog.oldestAgeMs < 60_000);
      const restingSinceMs = performance.now();
      // Longer than wal_sender_timeout, with the socket paused.
      await until("the reader has rested", () => performance.now() - restingSinceMs > 2_500);
      assert.ok(pid !== null && (await sender()) === pid, "the server ended the connection");
      let count = 1;
      let heapMax = 0;
      for (;;) {
        const { rows } = await pass.next(1_000, 1e9);
        if (rows.length === 0) break;
        for (const { event, mark } of rows) {
          count += 1;
          if (event.id !== String(count) || mark !== count) assert.fail(`${event.id} at ${count}`);
        }
        const { arrayBuffers, heapUsed } = process.memoryUsage();
        heapMax = Math.max(heapMax, arrayBuffers + heapUsed);
      }
      assert.equal(count, 300_000);
      assert.ok(heapMax < 200e6, `${Math.round(heapMax / 1e6)} MB`);
      await setting("wal_sender_timeout", "60s");
    });

    test("D9 a pipeline shows its own events, and reports which types have no route", async () => {
      await using stage = await openStage(server);
      const types = [
        { pattern: "T", mine: true },
        { pattern: "*", mine: false },
      ];
      const { log, place } = await stage.begin({ spec: { ...SPEC, types } });
      await stage.admin.query(
        `insert into ${stage.quoted} (id, event_type) values (1, 'U'), (2, 'T'), (3, 'U'), (4, 'V'), (5, null)`,
      );
      const { rows } = await readOn(log, place);
      assert.deepEqual(ids(rows), ["2", "5"]);
      assert.deepEqual(await log.unrouted([types, [{ pattern: "V", mine: true }]]), [{ type: "U", count: 2 }]);
    });
  });
}
