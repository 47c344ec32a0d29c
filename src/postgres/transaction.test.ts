import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { freePort } from "../../test/servers/free-port.ts";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { type ErrorCode, isRelayError, RelayError } from "../core/errors.ts";
import { type Database, openDatabase } from "./pool.ts";
import { openTransaction, statement, type TransactionSettings, transaction } from "./transaction.ts";

let server: PostgresServer;
let database: Database;
let settings: TransactionSettings;

before(async () => {
  server = await startPostgres({ version: 18 });
  await server.query("create table note (id int primary key, text text unique deferrable initially deferred)");
  await server.query("insert into note values (1, 'a'), (2, 'b')");
  database = openDatabase({ url: server.url, connectionsMax: 2, timeouts: { connectMs: 1_000 } });
  settings = { context: database.errorContext("testing"), statementTimeoutMs: 1_000, lockTimeoutMs: 100 };
});

after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

const assertRejects = (promise: Promise<unknown>, code: ErrorCode) =>
  assert.rejects(promise, (error) => isRelayError(error, code) || assert.fail(`not ${code}: ${String(error)}`));

async function textOf(id: number): Promise<unknown> {
  return (await server.query<{ text: string }>("select text from note where id = $1", [id])).rows[0]?.text;
}

test("every value arrives as the server's text", async () => {
  const text =
    "select 1.10::numeric, 9007199254740993::bigint, true, null, '\\x00ff'::bytea, '{\"a\": 1}'::jsonb, array[1,2]";
  const [row] = await statement(database.pool, settings, text);
  assert.deepEqual(row, ["1.10", "9007199254740993", "t", null, "\\x00ff", '{"a": 1}', "{1,2}"]);
});

test("a transaction commits all of it or nothing", async () => {
  await transaction(database.pool, settings, async (session) => {
    await session.rows("insert into note values ($1, $2)", [10, "x"]);
  });
  const failing = transaction(database.pool, settings, async (session) => {
    await session.rows("update note set text = 'y' where id = 10");
    throw new RelayError("FENCED", "no longer ours");
  });
  await assertRejects(failing, "FENCED");
  assert.equal(await textOf(10), "x");
});

test("an error that was swallowed inside does not look like a commit", async () => {
  const swallowing = transaction(database.pool, settings, async (session) => {
    await session.rows("update note set text = 'lost' where id = 1");
    await session.rows("select nonsense").catch(() => {});
  });
  await assertRejects(swallowing, "DATABASE_REFUSED");
  assert.equal(await textOf(1), "a");
});

test("a constraint that fails at the commit is an error and nothing was written", async () => {
  const failing = transaction(database.pool, settings, (session) =>
    session.rows("update note set text = 'b' where id = 1"),
  );
  await assertRejects(failing, "DATABASE_REFUSED");
  assert.equal(await textOf(1), "a");
});

test("a statement that takes too long, or waits too long for a lock, is DATABASE_BUSY", async () => {
  await assertRejects(
    statement(database.pool, { ...settings, statementTimeoutMs: 50 }, "select pg_sleep(5)"),
    "DATABASE_BUSY",
  );
  const blocker = new pg.Client({ connectionString: server.url });
  await blocker.connect();
  await blocker.query("begin; update note set text = 'mine' where id = 2");
  await assertRejects(statement(database.pool, settings, "update note set text = 'z' where id = 2"), "DATABASE_BUSY");
  await blocker.query("rollback");
  await blocker.end();
  assert.equal(await textOf(2), "b");
});

test("a deadlock is DATABASE_BUSY for one and a commit for the other", async () => {
  const patient = { ...settings, lockTimeoutMs: 5_000, statementTimeoutMs: 10_000 };
  const both = Promise.withResolvers<void>();
  let arrived = 0;
  const cross = (first: number, second: number) =>
    transaction(database.pool, patient, async (session) => {
      await session.rows("update note set text = text where id = $1", [first]);
      arrived += 1;
      if (arrived === 2) both.resolve();
      await both.promise;
      await session.rows("update note set text = text where id = $1", [second]);
    });
  const results = await Promise.allSettled([cross(1, 2), cross(2, 1)]);
  const failed = results.filter((result) => result.status === "rejected");
  assert.equal(failed.length, 1);
  assert.ok(isRelayError(failed[0]?.reason, "DATABASE_BUSY"));
});

test("nothing of a transaction stays in the session: a pooler may pass it on", async () => {
  const show = "select current_setting('statement_timeout'), current_setting('work_mem'), current_setting('datestyle')";
  const before = await database.pool.query({ text: show, rowMode: "array" });
  await statement(database.pool, { ...settings, settings: { work_mem: "1MB" } }, "select 1");
  await statement(database.pool, { ...settings, settings: { work_mem: "1MB" } }, "select 1/0").catch(() => {});
  const after = await database.pool.query({ text: show, rowMode: "array" });
  assert.deepEqual(after.rows, before.rows);
  const prepared = await database.pool.query("select count(*) as n from pg_prepared_statements");
  assert.equal(prepared.rows[0]?.n, "0");
});

test("a connection that broke is not used again, and its break in a pause is no unhandled error", async () => {
  const open = await openTransaction(database.pool, settings, "select pg_backend_pid()");
  const pid = open.firstRows[0]?.[0];
  await server.query("select pg_terminate_backend($1::int)", [pid]);
  await assertRejects(
    open.session.rows("select 1").catch((error: unknown) => {
      throw isRelayError(error) ? error : new RelayError("DATABASE_UNREACHABLE", String(error));
    }),
    "DATABASE_UNREACHABLE",
  );
  await open.end();
  const [row] = await statement(database.pool, settings, "select pg_backend_pid()");
  assert.notEqual(row?.[0], pid);
});

test("a server that is gone, or that does not answer, is DATABASE_UNREACHABLE", async () => {
  const nobody = openDatabase({ host: "127.0.0.1", port: await freePort(), user: "x", timeouts: { connectMs: 500 } });
  await assertRejects(statement(nobody.pool, settings, "select 1"), "DATABASE_UNREACHABLE");
  await nobody.close();
  await statement(database.pool, settings, "select 1");
  await server.pause();
  try {
    await assertRejects(
      statement(database.pool, { ...settings, statementTimeoutMs: 100 }, "select 1"),
      "DATABASE_UNREACHABLE",
    );
  } finally {
    server.resume();
  }
});

test("waiting in vain for a connection of one's own is DATABASE_BUSY", async () => {
  const open = [];
  for (let count = 0; count < 2; count++) open.push(await openTransaction(database.pool, settings, "select 1"));
  await assertRejects(statement(database.pool, settings, "select 1"), "DATABASE_BUSY");
  for (const it of open) await it.end();
});

test("equal options share their connections until the last one closes", async () => {
  const options = { url: server.url, applicationName: "shared one" };
  const [first, second] = [openDatabase(options), openDatabase({ ...options })];
  assert.equal(first.pool, second.pool);
  assert.equal(first.id, second.id);
  await first.close();
  await first.close();
  await statement(second.pool, settings, "select 1");
  await second.close();
  await assertRejects(statement(second.pool, settings, "select 1"), "DATABASE_UNREACHABLE");
  const third = openDatabase({ ...options, relaySchema: "another" });
  assert.notEqual(third.id, first.id);
  await third.close();
});

test("options that cannot work are refused at once", () => {
  for (const options of [{ connectionsMax: 1 }, { relaySchema: "" }, { relaySchema: "x".repeat(64) }]) {
    assert.throws(
      () => openDatabase({ url: server.url, ...options }),
      (error) => isRelayError(error, "CONFIG_INVALID"),
    );
  }
});
