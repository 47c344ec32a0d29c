import assert from "node:assert/strict";
import { describe, test } from "node:test";
import pg from "pg";
import { freePort } from "../servers/free-port.ts";
import { startPostgres } from "../servers/postgres.ts";
import { until } from "../servers/until.ts";
import { copyDatabase } from "./database-copies.ts";
import { logs, once, printed, publish, told, withManagedLog } from "./log-stage.ts";
import { runCommand, startService } from "./service-process.ts";
import { serverOfFile, stagesOn } from "./service-stage.ts";
import { openStage } from "./stage.ts";

const stage = stagesOn(serverOfFile(), "kinds", []);

describe("kinds of logs", { concurrency: 2 }, () => {
  test("H1 D9: a reset of the write-ahead log beside a running relay drops the slot, and the relay goes on", async () => {
    await using it = await stage();
    await it.sql(`create schema shop; create table shop.log (id uuid primary key default gen_random_uuid(),
      event_type text, aggregate_id text, payload text)`);
    const write = (type: string) =>
      it.sql("insert into shop.log (event_type, aggregate_id, payload) values ($1, 'k', '{}')", [type]);
    const env = { DATABASE_URL: it.url, OUTBOX_WAL: "shop.log", OUTBOX_DESTINATION: "stdout:", LOG_START: "now" };
    await told(["migrate", "up"], env);
    await using service = startService(["run"], { ...env, PORT: String(await freePort()) });
    await service.becomes("healthy");
    const types = () => printed({ stdout: service.stdout() }).map(({ type }) => type);
    await write("first");
    await until("it is delivered", () => types().length === 1);
    await told(["pause", "shop.log"], env);
    assert.match(await told(["log", "reset", "shop.log", "--yes"], env), /the slot \S+ is dropped\ndone/);
    assert.deepEqual(await it.sql("select from pg_replication_slots where database = current_database()"), []);
    await told(["resume", "shop.log"], env);
    await until("it is read again", async () => (await logs(env))[0]?.slot?.status === "reserved");
    await write("last");
    await until("it goes on", () => types().length === 2);
    assert.deepEqual(types(), ["first", "last"]);
  });

  test("H1 D9: a reader of the write-ahead log from now on is not healthy before its slot is made", async () => {
    await using it = await stage();
    await it.sql(
      "create schema shop; create table shop.log (id uuid, event_type text, aggregate_id text, payload text)",
    );
    await it.sql("alter table shop.log add primary key (id)");
    const env = { DATABASE_URL: it.url, OUTBOX_WAL: "shop.log", OUTBOX_DESTINATION: "stdout:", LOG_START: "now" };
    await told(["migrate", "up"], env);
    const writer = new pg.Client(it.url);
    await writer.connect();
    // A slot is made once every open transaction has ended.
    await writer.query("begin; insert into shop.log values (gen_random_uuid(), 'early', 'k', '{}')");
    await using service = startService(["run"], { ...env, PORT: String(await freePort()) });
    await service.becomes("degraded");
    const seen = new Set<unknown>();
    const deadline = performance.now() + 3_000;
    while (performance.now() < deadline) seen.add((await service.get("/health")).json().status);
    assert.deepEqual([...seen], ["degraded"]);
    await writer.query("commit");
    await writer.end();
    await service.becomes("healthy");
    await it.sql("insert into shop.log values (gen_random_uuid(), 'late', 'k', '{}')");
    await until("it is delivered", () => printed({ stdout: service.stdout() }).some(({ type }) => type === "late"));
  });

  test("D9: rows and messages are read from the write-ahead log, by Debezium's rules where the columns are Debezium's", async () => {
    await using it = await stage();
    await it.sql(`create schema shop; create table shop.outboxevent (id uuid primary key default gen_random_uuid(),
      aggregatetype text, aggregateid text, type text, payload jsonb)`);
    const env = { DATABASE_URL: it.url, OUTBOX_WAL: "shop.outboxevent,message:shop", OUTBOX_DESTINATION: "stdout:" };
    assert.equal((await once(env)).code, 0);
    await it.sql(`insert into shop.outboxevent (aggregatetype, aggregateid, type, payload)
      values ('order', '7', 'OrderPlaced', '{"n": 1}')`);
    await it.sql(`select pg_logical_emit_message(true, 'shop', '{"id": "m1", "type": "said"}' || chr(10) || '{}')`);
    const { code, stderr, stdout } = await once(env);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      printed({ stdout })
        .map(({ type }) => type)
        .sort(),
      ["OrderPlaced", "said"],
    );
    assert.match(stdout, /"topic":"outbox\.event\.order"/);
    assert.match(stdout, /"key":"7"/);
    const listed = await logs(env);
    assert.deepEqual(
      listed.map(({ kind, pipeline, slot }) => [pipeline, kind, slot?.status]),
      [
        ["message.shop->stdout", "wal", "reserved"],
        ["shop.outboxevent->stdout", "wal", "reserved"],
      ],
    );
    const refused = async (args: readonly string[], why: RegExp) => {
      const ended = await runCommand(args, env);
      assert.notEqual(ended.code, 0);
      assert.match(ended.stderr, why);
    };
    await refused(["log", "seek", "shop.outboxevent", "--to", "beginning"], /only `--to now` is possible/);
    await told(["pause", "shop.outboxevent"], env);
    await refused(["lanes", "set", "shop.outboxevent", "2"], /reads the write-ahead log, which allows one lane/);
    await it.sql(
      `insert into shop.outboxevent (aggregatetype, aggregateid, type, payload) values ('order', '8', 'Skipped', '{}')`,
    );
    await told(["log", "seek", "shop.outboxevent", "--to", "now", "--yes"], env);
    await told(["resume", "shop.outboxevent"], env);
    await it.sql(
      `insert into shop.outboxevent (aggregatetype, aggregateid, type, payload) values ('order', '9', 'Taken', '{}')`,
    );
    const after = await once(env);
    assert.deepEqual(
      printed(after).map(({ type }) => type),
      ["Taken"],
      after.stderr,
    );
    for (const { pipeline } of listed) await told(["log", "reset", pipeline, "--yes"], env);
    assert.equal((await it.sql("select from pg_replication_slots where database = current_database()")).length, 0);
  });

  test("D9: an event table of one's own is tailed by its own names, with a column for the transaction or without", async () => {
    await using it = await stage();
    const columns =
      "no bigint generated always as identity primary key, kind text, stream text, body jsonb, at timestamptz default now()";
    await it.sql(`create schema store; create table store.plain (${columns});
      create table store.events (${columns}, tx xid8 not null default pg_current_xact_id()); create index on store.events (tx, no)`);
    const names = "id=no,type=kind,key=stream,payload=body,position=no,createdAt=at";
    for (const [table, xid] of [
      ["store.events", "tx"],
      ["store.plain", "none"],
    ] as const) {
      const env = {
        ...{ DATABASE_URL: it.url, OUTBOX_DESTINATION: "stdout:" },
        ...{ OUTBOX_EVENT_TABLES: table, OUTBOX_COLUMNS: `${names},xid=${xid}` },
      };
      await it.sql(
        `insert into ${table} (kind, stream, body) select 'happened', 's' || n % 2, '{}' from generate_series(1, 6) n`,
      );
      const { code, stderr, stdout } = await once(env);
      assert.equal(code, 0, stderr);
      assert.equal(printed({ stdout }).length, 6);
      await it.sql(`insert into ${table} (kind, stream, body) values ('later', 's', '{}')`);
      const listed = JSON.parse(await told(["events", "list", "--source", table, "-o", "json"], env)) as {
        events: { type: string; state: string }[];
      };
      assert.deepEqual(
        listed.events.slice(0, 2).map(({ state, type }) => `${type} ${state}`),
        ["later pending", "happened delivered"],
      );
      const log = (await logs(env)).find(({ source }) => source === table);
      assert.deepEqual([log?.kind, log?.lag], ["tail", 1]);
    }
  });

  test("D9 B7: a log that was restored on another server halts loudly, and goes on after adopt with what was not read", async () => {
    await using home = await startPostgres({ version: 15 });
    await using elsewhere = await startPostgres({ version: 15 });
    await using it = await withManagedLog(await openStage(home, { database: "shop", tables: [] }));
    const { env } = it;
    await publish(it, 4, "read");
    assert.equal(printed(await once(env)).length, 4);
    await publish(it, 3, "unread");
    await elsewhere.query(`create role ${it.role}`);
    await copyDatabase({ server: home, database: "shop" }, { server: elsewhere, database: "shop" });
    // Servers of tests are made alike.
    await elsewhere.query("update outbox_relay.identity set system_id = 'another'", [], "shop");
    const moved = { ...env, DATABASE_URL: elsewhere.databaseUrl("shop") };
    await using halted = startService(["run"], { ...moved, PORT: String(await freePort()) });
    await halted.logged("why it halts", (line) => JSON.stringify(line).includes("IDENTITY_CHANGED"));
    assert.deepEqual(printed({ stdout: halted.stdout() }), []);
    halted.kill("SIGTERM");
    await halted.ended;
    assert.match(
      await told(["adopt"], moved),
      /shop\.log: starts at its end, with 3 unread events of shop\.log->stdout parked/,
    );
    const after = await once(moved);
    assert.deepEqual(
      printed(after).map(({ type }) => type),
      ["unread", "unread", "unread"],
      after.stderr,
    );
    await elsewhere.query("select shop.log_publish('new', 'k', '{}')", [], "shop");
    assert.deepEqual(
      printed(await once(moved)).map(({ type }) => type),
      ["new"],
    );
  });
});
