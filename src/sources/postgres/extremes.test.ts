import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { type ErrorCode, isRelayError } from "../../core/errors.ts";
import type { ClaimedEvent, Settlement, Takeover } from "../../ports/queue-store.ts";
import { grantsFor } from "../../postgres/grants.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { openDatabase } from "../../postgres/pool.ts";
import { postgresSource } from "./postgres-source.ts";

const MEGABYTE = 1024 * 1024;
const TABLE = { schema: "app", table: "outbox" };
let server: PostgresServer;

before(async () => {
  server = await startPostgres({ version: 18 });
  await server.query("create role relay login");
});

after(async () => await server[Symbol.asyncDispose]());

/** A database of its own with one table, in one instance's hands. */
async function open(columns: string, options: { encoding?: string; statementMs?: number } = {}) {
  const name = `db_${randomUUID().slice(0, 8)}`;
  const encoding = options.encoding ? ` encoding '${options.encoding}' locale 'C' template template0` : "";
  await server.query(`create database ${name}${encoding}`);
  const admin = new pg.Client({ connectionString: server.databaseUrl(name) });
  admin.on("error", () => {});
  await admin.connect();
  await admin.query(`create schema app; create table app.outbox (id int primary key, type text default 't',
    aggregate_id text, published_at timestamptz, created_at timestamptz default clock_timestamp(), ${columns})`);
  const owner = openDatabase({ url: server.databaseUrl(name) });
  await migrateUp(owner);
  await owner.close();
  await admin.query(grantsFor({ role: "relay", tables: [TABLE] }));
  const timeouts = { statementMs: options.statementMs ?? 20_000, lockMs: 10_000 };
  const source = postgresSource({ database: { url: server.databaseUrl(name, "relay"), timeouts }, table: TABLE });
  const limits = { payloadBytesMax: 16 * MEGABYTE, headersMax: 1_000 };
  const store = source.pipeline({ name: "p", types: null, lanes: 1, attemptsMax: 3, ...limits });
  await store.prepare();
  const id = randomUUID();
  await source.membership.join({ id, name: "test", leaseMs: 60_000, pipelines: ["p"] });
  const { grant } = (await store.takeOver(id, [0]))[0] as Takeover;
  const begin = () => store.begin({ grants: [grant], exceptKeys: [], exceptTypes: [] });
  const nothing = { delivered: [], failed: [], handedBack: [], releasedHolds: [], suspects: [] };
  const settle = (parts: Partial<Settlement>) =>
    store.settle({ grant, previousBatch: 0n, batch: 0n, ledger: "none", ...nothing, ...parts });
  return {
    admin,
    store,
    grant,
    begin,
    settle,
    read: async (bytes = 1e9) => {
      const run = await begin();
      const pages: (readonly ClaimedEvent[])[] = [];
      for (let page = await run.next(100, bytes); page.length > 0; page = await run.next(100, bytes)) pages.push(page);
      await run.end();
      return pages;
    },
    [Symbol.asyncDispose]: async () => {
      await source.close();
      await admin.end();
    },
  };
}

const assertRejects = (promise: Promise<unknown>, code: ErrorCode) =>
  assert.rejects(promise, (error) => isRelayError(error, code) || assert.fail(`not ${code}: ${String(error)}`));
const die = (event: ClaimedEvent) => ({
  id: event.id,
  key: event.key,
  reason: event.fault?.reason ?? "no",
  attempts: 1,
  next: { kind: "dead", parks: true } as const,
});

const HUGE = 100 * MEGABYTE;
for (const [type, value] of [
  ["text", `repeat('x', ${HUGE})`],
  ["bytea", `convert_to(repeat('x', ${HUGE}), 'UTF8')`],
  ["json", `('"' || repeat('x', ${HUGE - 2}) || '"')::json`],
  ["jsonb", `to_jsonb(repeat('x', ${HUGE - 2}))`],
] as const) {
  test(`A19 a payload of 100 MB (${type}) is not loaded, and kept whole when it is dead`, async () => {
    await using it = await open(`payload ${type}`);
    await it.admin.query(`insert into app.outbox (id, payload) values (1, ${value}), (2, null)`);
    const before = process.memoryUsage();
    const [page] = await it.read();
    const after = process.memoryUsage();
    assert.ok(after.rss - before.rss < 40 * MEGABYTE, `${(after.rss - before.rss) / MEGABYTE} MB more`);
    assert.deepEqual(
      page?.map(({ id, fault, payload }) => [id, fault?.code ?? null, payload.length]),
      [
        ["1", "EVENT_TOO_LARGE", 0],
        ["2", null, 0],
      ],
    );
    await it.settle({ failed: [die(page[0]!)] });
    const kept = await it.admin.query(
      "select octet_length(payload) as bytes, failure_reason from outbox_relay.failed_events",
    );
    assert.equal(kept.rows[0]?.bytes, HUGE);
    assert.match(kept.rows[0]?.failure_reason, /the limit is 16777216/);
    assert.deepEqual(
      (await it.read()).flat().map(({ id }) => id),
      ["2"],
    );
  });
}

for (const type of ["text", "bytea", "jsonb"] as const) {
  test(`A19 large payloads (${type}) come in pages of bounded bytes, each as it was stored`, async () => {
    await using it = await open(`payload ${type}`);
    const value = `'"' || repeat(chr(97 + i % 26), ${MEGABYTE}) || '"'`;
    const cast = type === "bytea" ? `convert_to(${value}, 'UTF8')` : `(${value})::${type}`;
    await it.admin.query(`insert into app.outbox (id, payload) select i, ${cast} from generate_series(1, 20) i`);
    const pages = await it.read(4 * MEGABYTE);
    assert.deepEqual(
      pages.map(({ length }) => length),
      [4, 4, 4, 4, 4],
    );
    for (const event of pages.flat()) {
      const letter = String.fromCharCode(97 + (Number(event.id) % 26));
      assert.ok(event.payload.equals(Buffer.from(`"${letter.repeat(MEGABYTE)}"`)), event.id);
    }
  });
}

test("A16 bytes arrive as stored: zero, every byte, and none", async () => {
  await using it = await open("payload bytea");
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  for (const [id, payload] of [Buffer.from([0]), all, Buffer.alloc(0), all.subarray(128)].entries()) {
    await it.admin.query("insert into app.outbox (id, payload) values ($1, $2)", [id, payload]);
  }
  const events = (await it.read()).flat();
  assert.deepEqual(
    events.map(({ payload }) => payload.toString("hex")),
    ["00", all.toString("hex"), "", all.subarray(128).toString("hex")],
  );
  await it.settle({ failed: events.map(die) });
  const kept = await it.admin.query("select payload from outbox_relay.failed_events order by original_event_id::int");
  assert.deepEqual(
    kept.rows.map(({ payload }) => payload.toString("hex")),
    events.map(({ payload }) => payload.toString("hex")),
  );
});

test("A16 a database without an encoding may hold text that is no UTF-8: its bytes arrive as stored", async () => {
  await using it = await open("payload text, headers json", { encoding: "SQL_ASCII" });
  await it.admin.query(`set client_encoding = 'SQL_ASCII'`);
  await it.admin.query(`insert into app.outbox (id, payload) values (1, E'\\xff\\xfe broken'), (2, 'plain')`);
  const events = (await it.read()).flat();
  assert.deepEqual(
    events.map(({ payload }) => payload.toString("latin1")),
    ["\xff\xfe broken", "plain"],
  );
  await it.settle({ failed: [die(events[0]!)] });
  const kept = await it.admin.query("select payload from outbox_relay.failed_events");
  assert.equal(kept.rows[0]?.payload.toString("latin1"), "\xff\xfe broken");
});

test("10,000 headers are a fault of that event alone", async () => {
  await using it = await open("payload text default 'p', headers jsonb");
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`h${index}`, "v"])));
  await it.admin.query("insert into app.outbox (id, headers) values (1, $1), (2, '{\"a\": 1}'), (3, '[]')", [many]);
  const events = (await it.read()).flat();
  assert.deepEqual(
    events.map(({ fault }) => fault?.code ?? null),
    ["EVENT_UNREADABLE", null, "EVENT_UNREADABLE"],
  );
  assert.match(events[0]?.fault?.reason ?? "", /Row 1.*10000 headers/);
});

test("A10 an event whose headers jsonb cannot hold becomes a dead letter all the same", async () => {
  await using it = await open("payload json default '1', headers json");
  await it.admin.query(`insert into app.outbox (id, headers) values (1, '{"zero": "\\u0000"}'), (2, '{"half": "\\ud800"}'),
    (3, '{"n": 1e999999}'), (4, '{"fine": "yes"}')`);
  await it.settle({ failed: (await it.read()).flat().map(die) });
  const kept = await it.admin.query("select headers from outbox_relay.failed_events order by original_event_id");
  const plain = kept.rows.map(({ headers }) => headers);
  assert.deepEqual(plain, ['{"zero": "\\u0000"}', '{"half": "\\ud800"}', '{"n": 1e999999}', { fine: "yes" }]);
});

test("a settle that waits too long for a row's lock is DATABASE_BUSY and has changed nothing", async () => {
  await using it = await open("payload text default 'p'", { statementMs: 200 });
  await it.admin.query("insert into app.outbox (id) values (1), (2)");
  await it.admin.query("begin; select 1 from app.outbox where id = 2 for update");
  const settlement = { batch: 1n, delivered: ["1", "2"] };
  await assertRejects(it.settle(settlement), "DATABASE_BUSY");
  await assertRejects(it.settle({ ...settlement, releasedHolds: ["1"] }), "DATABASE_BUSY");
  await it.admin.query("rollback");
  assert.equal((await it.store.survey()).lanes[0]?.settledBatch, 0n);
  assert.deepEqual(
    (await it.read()).flat().map(({ id }) => id),
    ["1", "2"],
  );
  await it.settle(settlement);
  assert.deepEqual(await it.read(), []);
});

test("a run whose connection is lost says so, and the next one works", async () => {
  await using it = await open("payload text default 'p'");
  await it.admin.query("insert into app.outbox (id) select generate_series(1, 10)");
  const run = await it.begin();
  assert.equal((await run.next(3, 1e9)).length, 3);
  await it.admin.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'relay'");
  await assertRejects(run.next(3, 1e9), "DATABASE_UNREACHABLE");
  await run.end();
  await run.end();
  assert.deepEqual(await run.next(3, 1e9), []);
  assert.equal((await it.read()).flat().length, 10);
});

test("a database that is down is DATABASE_UNREACHABLE everywhere, and everything works when it is back", async () => {
  await using it = await open("payload text default 'p'");
  await it.admin.query("insert into app.outbox (id) values (1)");
  await server.kill();
  for (const act of [
    () => it.begin(),
    () => it.store.probe([it.grant]),
    () => it.settle({ batch: 1n, delivered: ["1"] }),
    () => it.store.survey(),
    () => it.store.takeOver(it.grant.owner, [0]),
    () => it.store.claimHeads(it.grant, ["1"]),
  ]) {
    await assertRejects(act(), "DATABASE_UNREACHABLE");
  }
  await server.restart();
  assert.equal((await it.read()).flat().length, 1);
  await it.settle({ batch: 1n, delivered: ["1"] });
});

test("F4 open runs never take the connections that settles need; further runs wait their turn", async () => {
  await using it = await open("payload text default 'p'");
  await it.admin.query("insert into app.outbox (id) values (1)");
  const runs = [await it.begin(), await it.begin()];
  let begun = false;
  const third = it.begin().then((run) => {
    begun = true;
    return run;
  });
  await it.settle({ batch: 1n, delivered: ["1"] });
  assert.equal(begun, false);
  await runs[0]!.end();
  await (await third).end();
  await runs[1]!.end();
});
