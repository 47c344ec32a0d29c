import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../../test/servers/postgres.ts";
import { until } from "../../../../test/servers/until.ts";
import { type ErrorCode, isRelayError } from "../../../core/errors.ts";
import { type Database, openDatabase } from "../../../postgres/pool.ts";
import type { LogKind, LogPosition, LogRow } from "../log/log-kind.ts";
import type { Difference } from "./difference.ts";
import { type HorizonOptions, horizonKind } from "./horizon-kind.ts";

const SPEC = { name: "p", types: null, lanes: 1, attemptsMax: 3, payloadBytesMax: 1_000_000, headersMax: 10 };

for (const version of [15, 18] as const) {
  describe(`PostgreSQL ${version}`, () => {
    let server: PostgresServer;
    let database: Database;
    let admin: pg.Client;
    let writer: pg.Client;

    before(async () => {
      server = await startPostgres({ version });
      await server.query("create role reader login");
      database = openDatabase({ url: server.databaseUrl("postgres", "reader") });
      [admin, writer] = [
        new pg.Client({ connectionString: server.url }),
        new pg.Client({ connectionString: server.url }),
      ];
      await admin.connect();
      await writer.connect();
    });
    after(async () => {
      await admin.end();
      await writer.end();
      await database.close();
      await server[Symbol.asyncDispose]();
    });

    async function openLog(
      schema: string,
      options: Partial<HorizonOptions> = {},
      columns = "position bigserial primary key",
    ) {
      await admin.query(`create schema ${schema}; create table ${schema}.events (${columns}, id uuid default
          gen_random_uuid(), stream_id text, type text default 't', data text);
        grant usage on schema ${schema} to reader; grant select on ${schema}.events to reader`);
      const reference = { schema, table: "events" };
      return horizonKind({ database, reference, columns: {}, spec: SPEC, start: "beginning", ...options });
    }
    const insert = (schema: string, text: string, client = admin) =>
      client.query(`insert into ${schema}.events (stream_id, data) values ('k', '${text}')`);

    test("D9 A3 a table without the column is read up to what is final: a late row is neither lost nor overtaken", async () => {
      const kind = await openLog("late");
      await insert("late", "a");
      const reading = new Reading(kind, (await kind.decode(await kind.start())).place);
      await until("the first row", async () => (await reading.read()).length > 0);
      await writer.query("begin");
      await insert("late", "b", writer);
      await insert("late", "c");
      assert.deepEqual(await reading.read(), ["a"]);
      assert.equal((await kind.backlog({ heads: reading.heads, laneCount: 1 }, 10)).pending, 1);
      await writer.query("commit");
      await until("the late row", async () => (await reading.read()).length === 3);
      assert.deepEqual(await reading.read(), ["a", "b", "c"]);
      assert.equal(await kind.probe({ heads: reading.heads, laneCount: 1 }), false);
    });

    test("H1 maintenance delays nothing: VACUUM, ANALYZE and CREATE INDEX CONCURRENTLY hold such a lock", async () => {
      const kind = await openLog("kept");
      const reading = new Reading(kind, (await kind.decode(await kind.start())).place);
      await writer.query("begin; lock table kept.events in share update exclusive mode");
      await insert("kept", "a");
      await until("the row is read", async () => (await reading.read()).length === 1);
      await writer.query("rollback");
      assert.deepEqual(await reading.read(), ["a"]);
    });

    test("H1 writers that come and go all the time keep nothing back", async () => {
      const kind = await openLog("flow");
      const reading = new Reading(kind, (await kind.decode(await kind.start())).place);
      // One is open at every moment, and none for long.
      const others = [writer, new pg.Client({ connectionString: server.url })] as const;
      await others[1].connect();
      await insert("flow", "first");
      await writer.query("begin; insert into flow.events (data) values ('0')");
      let written = 0;
      await until("the first row is read", async () => {
        written += 1;
        await others[written % 2]!.query(`begin; insert into flow.events (data) values ('${written}')`);
        await others[(written + 1) % 2]!.query("commit");
        return (await reading.read()).includes("first");
      });
      await others[written % 2]!.query("commit");
      await others[1].end();
      const all = ["first", ...Array.from({ length: written + 1 }, (_, n) => String(n))];
      await until("all are read", async () => (await reading.read()).length === all.length);
      assert.deepEqual(await reading.read(), all);
    });

    test("a writer that stays open is reported, with the fix, after a while", async () => {
      const kind = await openLog("held", { reportAfterMs: 600 });
      const reading = new Reading(kind, (await kind.decode(await kind.start())).place);
      await writer.query("begin");
      await insert("held", "open", writer);
      await insert("held", "waits");
      assert.deepEqual(await reading.read(), []);
      const error: unknown = await until("patience is over", () =>
        reading.read().then(
          () => null,
          (it: unknown) => it,
        ),
      );
      assert.ok(
        isRelayError(error, "DATABASE_BUSY") && /held\.events .*open for \d+ s.*End it.*xid8/s.test(error.message),
      );
      await writer.query("rollback");
      await until("the row is read", async () => (await reading.read()).length === 1);
      assert.deepEqual(await reading.read(), ["waits"]);
    });

    test("it begins now at what is final, and a checkpoint knows what is ahead", async () => {
      const kind = await openLog("starts", { start: "now" });
      await insert("starts", "old");
      const text = await kind.start();
      for (const it of ["a", "b", "c"]) await insert("starts", it);
      const reading = new Reading(kind, (await kind.decode(text)).place, 2);
      await until("all are read", async () => (await reading.read()).length === 3);
      assert.deepEqual(await reading.read(), ["a", "b", "c"]);
      const [first, , last] = reading.rows;
      const { place, ahead } = await kind.decode(kind.encode(first!, [last!]));
      assert.deepEqual([place.mark, ahead.map(({ mark }) => mark)], [first!.mark, [last!.mark]]);
    });

    test("a table that went back, a place of another kind, a missing right and a missing index are named", async () => {
      const refused = (promise: Promise<unknown>, code: ErrorCode, says: RegExp) =>
        assert.rejects(promise, (error) => isRelayError(error, code) && says.test(error.message));
      const kind = await openLog("lacks");
      await insert("lacks", "a");
      await refused(kind.decode(`{"from": "1:1:", "to": null, "after": "99", "ahead": ""}`), "LOG_LOST", /ends at 1/);
      await refused(
        kind.decode(`{"from": "5:7:", "to": null, "after": "0", "ahead": ""}`),
        "LOG_LOST",
        /as it is read now/,
      );
      await admin.query("alter sequence lacks.events_position_seq cache 20");
      await refused(
        kind.prepare(),
        "COLUMN_MISTYPED",
        /cache 20 numbers.*alter sequence lacks.events_position_seq cache 1/,
      );
      const bare = await openLog("bare", {}, "position bigserial");
      await refused(bare.prepare(), "INDEX_MISSING", /create index concurrently on "bare"\."events" \("position"\)/);
    });
  });
}

/** A lane that continues where it stopped; `read` returns all that it ever read. */
class Reading {
  readonly rows: LogRow<Difference>[] = [];
  heads: ReadonlyMap<number, LogPosition<Difference>>;
  readonly #kind: LogKind<Difference>;
  readonly #size: number;

  constructor(kind: LogKind<Difference>, place: LogPosition<Difference>, size = 10) {
    this.#kind = kind;
    this.#size = size;
    this.heads = new Map([[0, place]]);
  }

  async read(): Promise<readonly string[]> {
    const pass = await this.#kind.open({ heads: this.heads, laneCount: 1 });
    for (let isEnd = false; !isEnd; ) {
      const page = await pass.next(this.#size, 1e9);
      this.rows.push(...page.rows);
      this.heads = page.heads;
      isEnd = page.isEnd;
    }
    await pass.end();
    return this.rows.map(({ event }) => event.payload.toString());
  }
}
