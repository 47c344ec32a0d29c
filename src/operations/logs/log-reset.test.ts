import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { registerPipeline } from "../../postgres/pipelines.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { knownPipelines } from "../pipelines/pipelines.ts";
import { resetLog } from "./log-reset.ts";
import { createManaged } from "./managed-upkeep.ts";

let server: PostgresServer;
let database: Database;
const table = { schema: "shop", table: "log" };
const request = { author: { by: "tester" }, timeoutMs: 1_000 };

before(async () => {
  server = await startPostgres({ version: 15 });
  database = openDatabase({ url: server.url });
  await migrateUp(database);
  await createManaged(database, { table, payload: "text", partition: "1 day", wakeUp: false });
});
after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

async function registered(name: string, firstSlot: number | null) {
  const settings = { context: database.errorContext("registering"), statementTimeoutMs: 2_000 };
  await transaction(database.pool, settings, (session) =>
    registerPipeline(session, database, { name, source: table, lanes: 4, takes: null }),
  );
  await server.query(`update outbox_relay.pipelines set first_slot = ${firstSlot} where name = '${name}'`);
  await server.query(`insert into outbox_relay.parked (pipeline, event_id, place, event_type, payload)
    values ('${name}', 'e', 1, 't', '')`);
  const found = (await knownPipelines(database)).find(({ pipeline }) => pipeline === name);
  assert.ok(found);
  return found;
}

const rowsOf = async (name: string) =>
  (await server.query(`select first_slot from outbox_relay.pipelines where name = '${name}'`)).rows.length;

test("D9 a reset reader is gone with its parked events, and no longer blocks the pruning of the log", async () => {
  const known = await registered("shop.log@a->x", null);
  assert.deepEqual([known.log, known.subscriber], ["managed", "a"]);
  assert.equal((await resetLog({ database, columns: {} }, known, request)).parked, 1);
  assert.deepEqual(await knownPipelines(database), []);
  assert.equal(await rowsOf("shop.log@a->x"), 0);
  assert.equal((await server.query("select from outbox_relay.parked")).rows.length, 0);
});

test("D9 C1 the ledger slots of a reset reader are never reused", async () => {
  const known = await registered("shop.log@b->x", 0);
  await resetLog({ database, columns: {} }, known, request);
  assert.deepEqual(await knownPipelines(database), []);
  assert.equal(await rowsOf("shop.log@b->x"), 1, "its row keeps them");
  const again = await registered("shop.log@b->x", 4);
  assert.equal(again.lanes, 4, "a new run starts from the beginning");
});

test("D9 a reader that a live instance serves keeps its lanes, without their positions", async () => {
  const known = await registered("shop.log@c->x", null);
  await server.query(`insert into outbox_relay.instances (id, name, pipelines, lease_ms, alive_until)
    values (gen_random_uuid(), 'i', array['shop.log@c->x'], 1000, clock_timestamp() + interval '1 minute')`);
  await server.query(`update outbox_relay.lanes set position = '{"from": "1:1:"}' where pipeline = 'shop.log@c->x'`);
  await resetLog({ database, columns: {} }, known, request);
  const { rows } = await server.query("select lane, position from outbox_relay.lanes where pipeline = 'shop.log@c->x'");
  assert.deepEqual(
    rows.map((row) => (row as { position: unknown }).position),
    [null, null, null, null],
  );
});
