import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { openAsRelay } from "../../../test/servers/relay-role.ts";
import { isRelayError } from "../../core/errors.ts";
import { DEFAULT_LIMITS } from "../../core/limits.ts";
import type { QueueStore } from "../../ports/queue-store.ts";
import { postgresMembership } from "../../postgres/membership.ts";
import type { Database } from "../../postgres/pool.ts";
import { postgresSource } from "../../sources/postgres/postgres-source.ts";
import { changeLaneCount } from "./lane-count.ts";
import { pausePipelines, resumePipelines } from "./pause.ts";
import { type KnownPipeline, knownPipelines } from "./pipelines.ts";

const NAME = "app.outbox->out";
const TABLE = { schema: "app", table: "outbox" };
let server: PostgresServer;
let database: Database;

before(async () => {
  server = await startPostgres({ version: 18 });
  database = await openAsRelay(server, {
    sql: `create schema app; create table app.outbox (id uuid primary key,
    position bigint generated always as identity, event_type text, payload json, published_at timestamptz)`,
    names: [TABLE],
  });
});
after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await server.query("truncate app.outbox, outbox_relay.pipelines, outbox_relay.lanes, outbox_relay.instances");
  await storeOf(8).prepare();
  await pausePipelines(database, [NAME], { by: "mia" });
});

function storeOf(lanes: number): QueueStore {
  const { headersMax, payloadBytesMax } = DEFAULT_LIMITS;
  const spec = { name: NAME, types: null, lanes, attemptsMax: 1, headersMax, payloadBytesMax };
  return postgresSource({ database, table: TABLE }).pipeline(spec);
}

/** An instance that owns all lanes, and does not see requests of operators. */
async function ownAll(store: QueueStore) {
  const id = randomUUID();
  await postgresMembership(database).join({ id, name: "stubborn", leaseMs: 60_000, pipelines: [NAME] });
  const { lanes } = await store.prepare();
  return (await store.takeOver(id, [...Array(lanes).keys()])).map(({ grant }) => grant);
}

const known = async (): Promise<KnownPipeline> => (await knownPipelines(database))[0]!;
const change = async (lanes: number, timeoutMs = 300) =>
  await changeLaneCount({ database, columns: {} }, await known(), lanes, { timeoutMs, author: { by: "mia" } });
const laneRows = async () => (await server.query("select epoch from outbox_relay.lanes")).rows as { epoch: string }[];

test("B4 lanes that are not handed over in time stay unchanged, and the request is withdrawn", async () => {
  const grants = await ownAll(storeOf(8));
  await assert.rejects(change(4), /8 lanes of app\.outbox->out were not handed over within/);
  assert.deepEqual(
    [(await known()).lanes, (await known()).pause?.lanesWanted, (await laneRows()).length],
    [8, null, 8],
  );
  assert.equal(grants.length, 8);
});

test("B4 lanes of a dead owner need no hand-over, and its late writes are fenced", async () => {
  const store = storeOf(8);
  const [grant] = await ownAll(store);
  await server.query("update outbox_relay.instances set alive_until = now() - interval '1 second'");
  assert.deepEqual(await change(3), { pipeline: NAME, before: 8, after: 3 });
  for (const { epoch } of await laneRows()) assert.ok(BigInt(epoch) > grant!.epoch);
  const empty = { delivered: [], failed: [], handedBack: [], releasedHolds: [], suspects: [] };
  const late = store.settle({ grant: grant!, previousBatch: 0n, batch: 1n, ledger: "none", ...empty });
  await assert.rejects(late, (error) => isRelayError(error, "FENCED"));
});

test("B4 an instance that prepared before the change acquires no lane until it has prepared again", async () => {
  const store = storeOf(8);
  await store.prepare();
  await change(3);
  const id = randomUUID();
  await postgresMembership(database).join({ id, name: "slow", leaseMs: 60_000, pipelines: [NAME] });
  assert.deepEqual(await store.takeOver(id, [0, 1, 2]), []);
  assert.deepEqual(await store.prepare(), { lanes: 3 });
  assert.equal((await store.takeOver(id, [0, 1, 2])).length, 3);
});

test("B4 instances that start during the change restore no lane", async () => {
  for (const lanes of [2, 9, 1, 8, 3, 7, 2, 8]) {
    await Promise.all([change(lanes, 5_000), ...Array.from({ length: 6 }, () => storeOf(5).prepare())]);
    assert.deepEqual([(await known()).lanes, (await laneRows()).length], [lanes, lanes]);
  }
});

test("B4 A11 where delivery is exactly once, only events of the pipeline's own routes have to be delivered first", async () => {
  const { headersMax, payloadBytesMax } = DEFAULT_LIMITS;
  const types = [
    { pattern: "order.*", mine: true },
    { pattern: "mail.*", mine: false },
  ];
  const spec = { name: NAME, types, lanes: 8, attemptsMax: 1, headersMax, payloadBytesMax };
  await postgresSource({ database, table: TABLE }).pipeline(spec).prepare();
  await server.query("update outbox_relay.pipelines set first_slot = 0");
  const insert = (type: string) =>
    server.query("insert into app.outbox (id, event_type, payload) values (gen_random_uuid(), $1, '{}')", [type]);
  await insert("mail.sent");
  await insert("strange.thing");
  assert.deepEqual(await change(4), { pipeline: NAME, before: 8, after: 4 });
  await insert("order.placed");
  await assert.rejects(change(2), /delivers exactly once and has undelivered events/);
});

test("A17 an invalid number, and a pipeline that is not paused, are refused", async () => {
  await assert.rejects(change(0), /0 is not a valid number of lanes/);
  await assert.rejects(change(1_025), /1025 is not a valid number of lanes/);
  assert.deepEqual(await change(8), { pipeline: NAME, before: 8, after: 8 });
  const before = await known();
  await resumePipelines(database, [NAME], { by: "mia" });
  await assert.rejects(change(4), /is not paused/);
  const stale = changeLaneCount({ database, columns: {} }, before, 4, { timeoutMs: 300, author: { by: "mia" } });
  await assert.rejects(stale, /was resumed or changed concurrently/);
});
