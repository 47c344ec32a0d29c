import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { until } from "../../../../test/servers/until.ts";
import { type ErrorCode, isRelayError } from "../../../core/errors.ts";
import type { PipelineSpec } from "../../../ports/queue-store.ts";
import type { ColumnNames } from "../../../postgres/column-names.ts";
import { type Database, openDatabase } from "../../../postgres/pool.ts";
import type { LogKind, LogPosition, LogRow } from "../log/log-kind.ts";
import { SettledAhead } from "../log/log-lane.ts";
import type { Difference } from "./difference.ts";
import type { LogStart } from "./table-log.ts";
import { tailKind } from "./tail-kind.ts";

const SPEC: PipelineSpec = {
  name: "p",
  types: null,
  lanes: 1,
  attemptsMax: 3,
  payloadBytesMax: 1_000_000,
  headersMax: 10,
};
const EVENTS = `(position bigint generated always as identity primary key, tx xid8 default pg_current_xact_id(),
  event_id uuid not null default gen_random_uuid(), stream_id text, type text, data text, metadata jsonb,
  created_at timestamptz not null default clock_timestamp())`;

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    let admin: pg.Client;
    let count = 0;

    before(async () => {
      server = await startPostgres({ version });
      await server.query("create role reader login");
      database = openDatabase({ url: server.databaseUrl("postgres", "reader") });
      admin = new pg.Client({ connectionString: server.url });
      await admin.connect();
    });
    after(async () => {
      await admin.end();
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    /** A table of its own, that the role may only read. `$T` stands for it. */
    async function openLog(
      options: {
        columns?: string;
        index?: string | null;
        names?: ColumnNames;
        start?: LogStart;
        spec?: Partial<PipelineSpec>;
        rows?: string;
      } = {},
    ) {
      count += 1;
      const schema = `we"ird ${count}`;
      const T = tableOf(count);
      const sql = (text: string) => admin.query(text.replaceAll("$T", T));
      await sql(`create schema "we""ird ${count}"; create table $T ${options.columns ?? EVENTS}`);
      if (options.index !== null) await sql(`create index on $T ${options.index ?? "(tx, position)"}`);
      await sql(`grant usage on schema "we""ird ${count}" to reader; grant select on $T to reader`);
      if (options.rows !== undefined) await sql(options.rows);
      const kind = tailKind({
        database,
        reference: { schema, table: "ev'ents" },
        columns: options.names ?? {},
        spec: { ...SPEC, ...options.spec },
        start: options.start ?? "beginning",
      });
      return { sql, kind };
    }
    const begin = async (kind: LogKind<Difference>, lanes = 1): Promise<Heads> => {
      const { place } = await kind.decode(await kind.start());
      return new Map(Array.from({ length: lanes }, (_, lane) => [lane, place]));
    };
    const write = (text: string, key = "k") =>
      `insert into $T (stream_id, type, data) values ('${key}', 'happened', '${text}')`;
    const texts = (rows: readonly LogRow<Difference>[]) => rows.map(({ event }) => event.payload.toString());

    test("D9 a table is read from its beginning, page by page, and then what is new", async () => {
      const { sql, kind } = await openLog({ rows: write("a") });
      await sql(write("b"));
      await sql(write("c"));
      const read = await readAll(kind, await begin(kind), 2);
      assert.deepEqual(texts(read.rows), ["a", "b", "c"]);
      assert.equal(await kind.probe({ heads: read.heads, laneCount: 1 }), false);
      await sql(write("d"));
      assert.equal(await kind.probe({ heads: read.heads, laneCount: 1 }), true);
      const more = await readAll(kind, read.heads, 2);
      assert.deepEqual(texts(more.rows), ["d"]);
      assert.deepEqual((await readAll(kind, more.heads, 2)).rows, []);
    });

    test("A3 a row that commits late is read when it commits, and nothing is read twice", async () => {
      const { sql, kind } = await openLog();
      let heads = await begin(kind);
      const late = new pg.Client({ connectionString: server.url });
      await late.connect();
      await late.query("begin; select pg_current_xact_id()");
      await late.query(write("early number", "a").replaceAll("$T", tableOf(count)));
      await sql(write("b"));
      const seen: string[] = [];
      const look = async () => {
        const read = await readAll(kind, heads, 10);
        heads = read.heads;
        seen.push(texts(read.rows).join());
      };
      await look();
      await sql(write("c"));
      await look();
      await late.query("savepoint s");
      await late.query(write("undone", "a").replaceAll("$T", tableOf(count)));
      await late.query("rollback to s; savepoint s2");
      await late.query(write("saved", "a").replaceAll("$T", tableOf(count)));
      await look();
      await late.query("commit");
      await look();
      await look();
      await late.end();
      assert.deepEqual(seen, ["b", "c", "", "early number,saved", ""]);
    });

    test("a difference larger than a page is read to its end in order, whatever commits meanwhile", async () => {
      const { sql, kind } = await openLog();
      const heads = await begin(kind);
      const late = new pg.Client({ connectionString: server.url });
      await late.connect();
      await late.query("begin");
      const bulk = (text: string) => `insert into $T (stream_id, type, data)
        select i::text, 'happened', '${text}' || i from generate_series(1, 3000) i`;
      await late.query(bulk("late ").replaceAll("$T", tableOf(count)));
      await sql(write("first"));
      const first = await readAll(kind, heads, 1_000);
      assert.deepEqual(texts(first.rows), ["first"]);
      await sql(bulk("x"));
      await late.query("commit");
      const pass = await kind.open({ heads: first.heads, laneCount: 1 });
      const page = await pass.next(700, 1e9);
      await sql(write("after"));
      const rows = [...page.rows];
      let place = page.heads;
      await pass.end();
      for (let isEnd = false; !isEnd; ) {
        // A place that was written down and read again is as good.
        const head = place.get(0)!;
        const again = await kind.decode(kind.encode(head, []));
        const next = await kind.open({ heads: new Map([[0, again.place]]), laneCount: 1 });
        const more = await next.next(700, 1e9);
        rows.push(...more.rows);
        place = more.heads;
        isEnd = more.isEnd;
        await next.end();
      }
      const expected = [...numbered("late ", 3_000), ...numbered("x", 3_000), "after"];
      assert.deepEqual(texts(rows), expected);
      await late.end();
    });

    test("D9 rows of before the column come first, and none of them when it begins now or at a time", async () => {
      const columns = EVENTS.replace("tx xid8 default pg_current_xact_id()", "tx xid8");
      const { sql, kind } = await openLog({ columns, rows: write("old") });
      await sql("alter table $T alter column tx set default pg_current_xact_id()");
      await sql(write("new"));
      await sql("update $T set created_at = '2026-01-01 00:00Z' where data = 'old'");
      assert.deepEqual(texts((await readAll(kind, await begin(kind), 10)).rows), ["old", "new"]);
      const reference = { schema: `we"ird ${count}`, table: "ev'ents" };
      for (const start of ["now", { at: new Date("2026-02-01") }, { at: "2999-01-01T00:00:00Z" }] as const) {
        const other = tailKind({ database, reference, columns: {}, spec: SPEC, start });
        const heads = await begin(other);
        await sql(write("newest"));
        const expected = start !== "now" && typeof start.at !== "string" ? ["new", "newest", "newest"] : ["newest"];
        const read = texts((await readAll(other, heads, 10)).rows);
        assert.deepEqual(read.slice(0, expected.length), expected.slice(0, read.length));
        assert.ok(read.length > 0 && !read.includes("old"));
      }
    });

    test("lanes that stand apart are read apart, and are together afterwards", async () => {
      const { sql, kind } = await openLog({ spec: { lanes: 4 } });
      const bulk = `insert into $T (stream_id, type, data) select i % 40, 'happened', i from generate_series(1, 400) i`;
      await sql(bulk);
      const start = await begin(kind, 4);
      const expected = texts((await readAll(kind, start, 1_000)).rows);
      const pass = await kind.open({ heads: start, laneCount: 4 });
      pass.leave(3);
      const half = await pass.next(100, 1e9);
      assert.ok(!half.heads.has(3) && half.rows.every(({ event }) => event.lane !== 3));
      const one = await kind.open({ heads: new Map([[3, start.get(3)!]]), laneCount: 4 });
      const ofThree: LogRow<Difference>[] = [];
      let three = await one.next(20, 1e9);
      ofThree.push(...three.rows);
      for (; !three.isEnd; ofThree.push(...three.rows)) three = await one.next(20, 1e9);
      await sql(bulk);
      const heads = new Map([...half.heads, ...three.heads]);
      assert.equal(new Set([...heads.values()].map(({ segment }) => `${segment.from}/${segment.to}`)).size, 2);
      const rest = await readAll(kind, heads, 50);
      assert.equal(new Set([...rest.heads.values()].map(({ segment }) => segment.from)).size, 1);
      const all = [...half.rows, ...ofThree, ...rest.rows];
      assert.deepEqual(texts(all).sort(), [...expected, ...expected].sort());
      for (let lane = 0; lane < 4; lane++) {
        const marks = all.filter(({ event }) => event.lane === lane).map(({ mark }) => mark);
        assert.deepEqual(
          marks,
          marks.toSorted((left, right) => left - right),
        );
      }
    });

    test("types that are not the pipeline's are stepped over, however many", async () => {
      const types = [{ pattern: "rare*", mine: true }];
      const { sql, kind } = await openLog({ spec: { types } });
      const heads = await begin(kind);
      await sql(`insert into $T (stream_id, type, data) select i, case when i % 60000 = 0 then 'rare' else 'often' end, i
        from generate_series(1, 130000) i`);
      assert.deepEqual(texts((await readAll(kind, heads, 100)).rows), ["60000", "120000"]);
      const { pending, isEstimate } = await kind.backlog({ heads, laneCount: 1 }, 1);
      assert.deepEqual([pending, isEstimate], [2, true]);
      assert.deepEqual(await kind.unrouted([types]), [{ type: "often", count: 1_000 }]);
    });

    test("a page ends when its bytes are reached; large payloads come whole, faults stay faults", async () => {
      const { sql, kind } = await openLog({ start: "now", spec: { payloadBytesMax: 100_000 } });
      const heads = await begin(kind);
      for (const bytes of [50_000, 60_000, 70_000, 200_000]) await sql(write("x".repeat(bytes)));
      await sql("insert into $T (stream_id, type, data) values ('k', null, 'no type')");
      await sql(`insert into $T (stream_id, type, data, metadata) values ('k', 'happened', 'y', '[1]')`);
      const pass = await kind.open({ heads, laneCount: 1 });
      const first = await pass.next(10, 100_000);
      assert.deepEqual(
        first.rows.map(({ event }) => event.payload.length),
        [50_000, 60_000],
      );
      const second = await pass.next(10, 100_000);
      assert.deepEqual(
        second.rows.map(({ event }) => event.fault?.code ?? event.payload.length),
        [70_000, "EVENT_TOO_LARGE", "EVENT_UNREADABLE", "EVENT_UNREADABLE"],
      );
    });

    test("unread rows are counted up to the limit, from each lane's position", async () => {
      const { sql, kind } = await openLog({ start: "now" });
      const heads = await begin(kind);
      await sql(write("a"));
      await sql(write("b"));
      const backlog = await kind.backlog({ heads, laneCount: 1 }, 10);
      assert.deepEqual([backlog.pending, backlog.isEstimate], [2, false]);
      assert.ok(backlog.oldestAgeMs !== null && backlog.oldestAgeMs < 60_000);
      const pass = await kind.open({ heads, laneCount: 1 });
      const page = await pass.next(1, 1e9);
      await sql(write("c"));
      assert.equal((await kind.backlog({ heads: page.heads, laneCount: 1 }, 10)).pending, 2);
    });

    test("a row is copied with its headers and its trace, as it was read", async () => {
      const columns = EVENTS.replace("metadata jsonb", "metadata json, traceparent text, tracestate text");
      const insert = (metadata: string, trace: string) =>
        `insert into $T (stream_id, type, data, metadata, traceparent, tracestate) values ('k', 't', 'd', ${metadata}, ${trace});`;
      const cases = [
        insert(`'{"a": "1"}'`, "'00-p', 's=1'"),
        insert(`'{"a": "\\u0000"}'`, "'00-p', null"),
        insert("'{}'", "'00-p', ''"),
        insert("null", "'00-p', 's=2'"),
        insert(`'{"traceparent": "own"}'`, "'00-p', 's=3'"),
        insert(`'{"b": 2}'`, "null, null"),
      ];
      const { sql, kind } = await openLog({ columns, rows: cases.join("\n") });
      const { rows } = await readAll(kind, await begin(kind), 10);
      const copied = await sql(
        `select * from (${kind.selectSql?.(rows)}) r (place, id, type, key, payload, headers, c, at)`,
      );
      const headersOf = (text: unknown) =>
        JSON.stringify(
          Object.entries(text ?? {})
            .map(([name, it]) => [name, String(it)])
            .sort(),
        );
      assert.equal(copied.rows.length, 6);
      copied.rows.forEach((row: Record<string, unknown>, index) => {
        const { event, mark } = rows[index]!;
        assert.deepEqual([row.place, row.id, row.key, String(row.payload)], [String(mark), event.id, event.key, "d"]);
        assert.equal(headersOf(row.headers), headersOf(event.headers), `case ${index}`);
      });
    });

    test("a checkpoint knows the rows that were settled ahead, also ten thousand of them", async () => {
      const { sql, kind } = await openLog({ rows: write("a") });
      await sql(write("b"));
      const { rows, heads } = await readAll(kind, await begin(kind), 10);
      const { segment } = heads.get(0)!;
      const ahead = Array.from({ length: 10_000 }, (_, index) => ({ segment, mark: index * 3 + (index % 7) + 10 }));
      const text = kind.encode(rows[0]!, [...ahead, rows[1]!]);
      assert.ok(text.length < 30_000, `${text.length}`);
      const checkpoint = await kind.decode(text);
      assert.equal(checkpoint.place.mark, 1);
      const settledAhead = new SettledAhead(kind, checkpoint.ahead);
      for (const it of [...ahead, rows[1]!]) assert.ok(settledAhead.meet(it) && !settledAhead.meet(it));
      assert.deepEqual([settledAhead.meet(rows[0]!), settledAhead.rest()], [false, []]);
    });

    test("events are found by their ids, and a table that is said to have no such column is read without it", async () => {
      const { sql, kind } = await openLog({ rows: write("a") });
      await sql(write("b"));
      const { rows } = await readAll(kind, await begin(kind), 10);
      const found = await kind.find?.([rows[1]!.event.id], 1);
      assert.deepEqual(found, [rows[1]!.event]);
      await sql("grant update on $T to reader");
      const reference = { schema: `we"ird ${count}`, table: "ev'ents" };
      const other = tailKind({ database, reference, columns: { xid: null }, spec: SPEC, start: "beginning" });
      assert.deepEqual(JSON.parse(await other.start()), { from: "1:1:", to: null, after: "0", ahead: "" });
      assert.deepEqual(texts((await readAll(other, await begin(other), 10)).rows), ["a", "b"]);
    });

    test("a checkpoint that is ahead of the server, or none at all, halts with the way out", async () => {
      const { kind } = await openLog();
      const lost = (text: string, says: RegExp) =>
        assert.rejects(kind.decode(text), (error) => isRelayError(error, "LOG_LOST") && says.test(error.message));
      const far = `{"from": "5:999999999:7", "to": null, "after": "0", "ahead": ""}`;
      await lost(far, /ahead of the log we"ird \d+\.ev'ents.*restored.*log seek/s);
      for (const text of ["", "{}", `{"lsn": "0/1"}`, far.replace("5:", "x"), far.replace('"0"', '"-1"')]) {
        await lost(text, /is not a (position|snapshot)/);
      }
    });

    test("A3 what was read before a crash of the server is not read on from: numbers may be given out twice", async () => {
      const { sql, kind } = await openLog();
      const written = await kind.start();
      const { heads } = await readAll(kind, await begin(kind), 10);
      // The number of this transaction counts as seen, and need not have reached the disk.
      await sql("begin");
      await sql(write("undone"));
      await sql("rollback");
      const seen = await readAll(kind, heads, 10);
      await admin.end();
      await server.stop("immediate");
      await server.restart();
      admin = new pg.Client({ connectionString: server.url });
      await admin.connect();
      await sql(write("after the crash"));
      const error: unknown = await until("the server is there again", () =>
        readAll(kind, seen.heads, 10).catch((it: Error) => (/ECONN|terminated/.test(it.message) ? null : it)),
      );
      assert.ok(
        isRelayError(error, "DATABASE_UNREACHABLE") && /recovered from a crash/.test(error.message),
        String(error),
      );
      const again = new Map([[0, (await kind.decode(written)).place]]);
      assert.deepEqual(texts((await readAll(kind, again, 10)).rows), ["after the crash"]);
    });

    test("rows of transactions that are yet to come halt with the way out: the table came out of a dump", async () => {
      const { kind } = await openLog({
        rows: "insert into $T (tx, stream_id, type, data) values ('4000000000', 'k', 't', 'd')",
      });
      await assert.rejects(kind.prepare(), (error) => isRelayError(error, "LOG_LOST") && /dump/.test(error.message));
    });

    test("what a table lacks is named with its cure", async () => {
      const refused = async (options: Parameters<typeof openLog>[0], code: ErrorCode, says: RegExp) => {
        const { kind } = await openLog(options);
        await assert.rejects(kind.prepare(), (error) => isRelayError(error, code) && says.test(error.message));
      };
      const plain = EVENTS.replace("tx xid8 default pg_current_xact_id(),", "");
      await refused({ columns: plain, index: "(position)" }, "COLUMN_MISSING", /add column xid xid8 default/);
      const unfilled = EVENTS.replace("default pg_current_xact_id()", "");
      await refused({ columns: unfilled }, "COLUMN_MISTYPED", /set default pg_current_xact_id\(\)/);
      await refused({ index: null }, "INDEX_MISSING", /create index concurrently on .* \("tx", "position"\)/);
      const loose = EVENTS.replace("generated always as identity primary key", "not null");
      await refused({ columns: loose, names: { order: "position" } }, "COLUMN_MISTYPED", /unique/);
      const { sql, kind } = await openLog();
      await sql("revoke select on $T from reader");
      await assert.rejects(kind.prepare(), (error) => isRelayError(error, "GRANT_MISSING"));
    });
  });
}

type Heads = ReadonlyMap<number, LogPosition<Difference>>;

const tableOf = (count: number) => `"we""ird ${count}"."ev'ents"`;
const numbered = (text: string, count: number) => Array.from({ length: count }, (_, index) => `${text}${index + 1}`);

async function readAll(kind: LogKind<Difference>, heads: Heads, size: number) {
  const pass = await kind.open({ heads, laneCount: heads.size });
  const rows: LogRow<Difference>[] = [];
  try {
    for (;;) {
      const page = await pass.next(size, 1e9);
      rows.push(...page.rows);
      if (page.isEnd) return { rows, heads: page.heads };
    }
  } finally {
    await pass.end();
  }
}
