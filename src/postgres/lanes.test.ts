import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../test/servers/postgres.ts";
import { openAsRelay } from "../../test/servers/relay-role.ts";
import { isRelayError } from "../core/errors.ts";
import { fenceSql } from "./fence.sql.ts";
import { release, requireGrant, survey, takeOver, writeSettings } from "./lanes.ts";
import { postgresMembership } from "./membership.ts";
import { pollTimeKeeper, registerPipeline } from "./pipelines.ts";
import { type Database, openDatabase } from "./pool.ts";
import { statement, transaction } from "./transaction.ts";

const LANES = "outbox_relay.lanes";
const SCOPE = { pipeline: "p", laneCount: 2 };
let server: PostgresServer;
let database: Database;
/** Another session, to hold locks in. */
let other: pg.Client;

before(async () => {
  server = await startPostgres({ version: 18 });
  database = await openAsRelay(server);
  other = new pg.Client({ connectionString: server.url });
  await other.connect();
});

after(async () => {
  await other.end();
  await database.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await server.query("truncate outbox_relay.pipelines, outbox_relay.lanes, outbox_relay.instances");
  await transaction(database.pool, writeSettings(database, "preparing"), (session) =>
    registerPipeline(session, database, {
      name: "p",
      source: { schema: "app", table: "outbox" },
      lanes: 2,
      takes: null,
    }),
  );
});

async function join(): Promise<string> {
  const id = randomUUID();
  await postgresMembership(database).join({ id, name: "host 1", leaseMs: 60_000, pipelines: ["p"] });
  return id;
}

const take = (owner: string, lanes: readonly number[] = [0]) => takeOver(database, SCOPE, owner, lanes);

test("B4 a caller that assumes another number of lanes than the database gets none", async () => {
  const id = await join();
  assert.deepEqual(await takeOver(database, { pipeline: "p", laneCount: 3 }, id, [0, 1]), []);
  assert.equal((await take(id, [0, 1])).length, 2);
  await server.query("update outbox_relay.pipelines set lanes = 1");
  assert.deepEqual(await take(id, [0, 1]), [], "also its own lanes");
});

test("an instance without a row of its own gets no lane", async () => {
  assert.deepEqual(await take(randomUUID()), []);
  const id = await join();
  await postgresMembership(database).leave(id);
  assert.deepEqual(await take(id), []);
});

test("an epoch is never given out twice, also when the database's clock is behind", async () => {
  const id = await join();
  const far = 9_000_000_000_000_000n;
  await server.query(`update ${LANES} set epoch = ${far}`);
  const epochs = [];
  for (let round = 0; round < 3; round++) epochs.push((await take(id))[0]?.grant.epoch);
  assert.deepEqual(epochs, [far + 1n, far + 2n, far + 3n]);
});

test("an epoch is at least the database's milliseconds, beyond those that a failover forgot", async () => {
  const id = await join();
  const [taken] = await take(id);
  assert.ok(Math.abs(Number(taken?.grant.epoch) - Date.now()) < 60_000);
});

for (const [what, lock] of [
  ["a claim or review", `select 1 from ${LANES} where lane = 0 for key share`],
  ["a settle", `update ${LANES} set settled_batch = settled_batch where lane = 0`],
] as const) {
  test(`B4 a take-over passes over a lane that ${what} of its owner is using, and takes it afterwards`, async () => {
    const [first, second] = [await join(), await join()];
    await take(first, [0, 1]);
    await postgresMembership(database).leave(first);
    await other.query(`begin; ${lock}`);
    const taken = await take(second, [0, 1]);
    assert.deepEqual(
      taken.map(({ grant }) => grant.lane),
      [1],
    );
    await other.query("commit");
    assert.equal((await take(second, [0])).length, 1);
  });
}

test("B4 a settle that waits for a take-over is fenced once it can continue", async () => {
  const [first, second] = [await join(), await join()];
  const [taken] = await take(first);
  await postgresMembership(database).leave(first);
  const grant = taken!.grant;
  const fence = fenceSql(database.tables, "p", {
    grant,
    previousBatch: 0n,
    batch: 1n,
    ledger: "none",
    delivered: ["a"],
  });
  await other.query(`begin; select 1 from ${LANES} where lane = 0 for update`);
  const settling = statement(database.pool, writeSettings(database, "settling"), fence);
  await other.query(`update ${LANES} set owner = '${second}', epoch = epoch + 1 where lane = 0; commit`);
  assert.deepEqual(await settling, []);
});

test("what is done with durable claims at a take-over commits or fails together with it", async () => {
  const [first, second] = [await join(), await join()];
  await take(first, [0]);
  await postgresMembership(database).leave(first);
  const seen: unknown[] = [];
  const failing = takeOver(database, SCOPE, second, [0, 1], {
    onTaken: async (session, taken) => {
      seen.push(...taken);
      await session.rows("select 1/0");
    },
  });
  await assert.rejects(failing, (error) => isRelayError(error, "DATABASE_REFUSED"));
  assert.deepEqual(seen, [
    { lane: 0, formerOwner: first, died: true },
    { lane: 1, formerOwner: null, died: false },
  ]);
  const { lanes } = await survey(database, "p");
  assert.deepEqual(
    lanes.map(({ owner }) => owner),
    [first, null],
  );
});

test("a released lane has no owner, and its former grant is fenced", async () => {
  const id = await join();
  const [taken] = await take(id);
  const check = () =>
    transaction(database.pool, writeSettings(database, "checking"), (session) =>
      requireGrant(session, database, "p", taken!.grant),
    );
  await check();
  await release(database, "p", taken!.grant, []);
  await assert.rejects(check(), (error) => isRelayError(error, "FENCED"));
});

test("B4 a reaper passes over an instance whose renewal is under way", async () => {
  const id = await join();
  await server.query("update outbox_relay.instances set alive_until = clock_timestamp() - interval '1 second'");
  await other.query(`begin; update outbox_relay.instances set alive_until = clock_timestamp() + interval '1 minute'`);
  assert.deepEqual(await postgresMembership(database).reap(), []);
  await other.query("commit");
  assert.deepEqual(await postgresMembership(database).reap(), []);
  assert.equal(await postgresMembership(database).renew(id, 1_000), true);
});

test("the heartbeat has a connection of its own and does not wait for work", async () => {
  const id = await join();
  const busy = Array.from({ length: 4 }, () =>
    transaction(database.pool, writeSettings(database, "working"), (session) => session.rows("select pg_sleep(0.5)")),
  );
  assert.equal(await postgresMembership(database).renew(id, 60_000), true);
  assert.equal(database.pool.waitingCount, 0);
  await Promise.all(busy);
});

test("a pipeline's name belongs to one table", async () => {
  const registering = transaction(database.pool, writeSettings(database, "preparing"), (session) =>
    registerPipeline(session, database, {
      name: "p",
      source: { schema: "app", table: "outbox_events" },
      lanes: 2,
      takes: null,
    }),
  );
  await assert.rejects(
    registering,
    (error) => isRelayError(error, "CONFIG_INVALID") && /app\.outbox, not/.test(error.message),
  );
});

test("A17 relay_state answers per schema and table", async () => {
  const id = await join();
  for (const { grant } of await take(id, [0, 1])) {
    const delivered = grant.lane === 0 ? ["a", "b"] : ["c"];
    const fence = fenceSql(database.tables, "p", { grant, previousBatch: 0n, batch: 1n, ledger: "none", delivered });
    await statement(database.pool, writeSettings(database, "settling"), fence);
  }
  await pollTimeKeeper(database, "p")();
  const { rows } = await server.query("select * from outbox_relay.relay_state");
  assert.equal(rows.length, 1);
  const { schema_name, table_name, last_published_event_id, total_events_published } = rows[0]!;
  assert.deepEqual(
    [schema_name, table_name, last_published_event_id, total_events_published],
    ["app", "outbox", "c", "3"],
  );
  const columns = ["id", "schema_name", "table_name", "last_poll_time", "last_published_event_id"];
  assert.deepEqual(Object.keys(rows[0]!), [...columns, "total_events_published", "created_at", "updated_at"]);
  assert.ok(rows[0]!.last_poll_time instanceof Date && rows[0]!.updated_at instanceof Date);
});

test("the poll time is written rarely, and its failure breaks nothing", async () => {
  const keep = pollTimeKeeper(database, "p");
  await keep();
  await server.query("update outbox_relay.pipelines set last_poll_time = null");
  await keep();
  const { rows } = await server.query("select last_poll_time from outbox_relay.pipelines");
  assert.equal(rows[0]?.last_poll_time, null);
  const nobody = openDatabase({ url: server.databaseUrl("no_such_database") });
  await pollTimeKeeper(nobody, "p")();
  await nobody.close();
});
