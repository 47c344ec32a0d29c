import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { grantsFor } from "../grants.ts";
import { openDatabase } from "../pool.ts";
import { migrateUp } from "./migrate.ts";

let server: PostgresServer;
before(async () => {
  server = await startPostgres({ version: 15 });
  const database = openDatabase({ url: server.url });
  await migrateUp(database);
  await database.close();
  await server.query("create role operator login");
  await server.query(grantsFor({ role: "operator", tables: [] }));
});
after(async () => await server[Symbol.asyncDispose]());

async function fail(id: string, payload: Buffer): Promise<void> {
  await server.query(
    `insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type, payload,
       failure_reason) values ('p', $1, 'journey_matcher', 'outbox', 'journey.created', $2, 'Kafka timeout')`,
    [id, payload],
  );
}

test("A10 A17 operators query the open dead letters with the JSON operators, whatever bytes a payload has", async () => {
  await fail("json", Buffer.from('{"journey": {"id": 7}, "big": 12345678901234567890}'));
  await fail("text", Buffer.from("no JSON: Zürich"));
  await fail("null", Buffer.from('"\\u0000"'));
  await fail("bytes", Buffer.from([0xff, 0x00]));
  await fail("empty", Buffer.alloc(0));
  await fail("resolved", Buffer.from("{}"));
  await server.query(
    `update outbox_relay.failed_events set resolved_at = now(), resolution = 'discarded', resolved_by = 'mia'
     where original_event_id = 'resolved'`,
  );
  const operator = new pg.Client(server.databaseUrl("postgres", "operator"));
  await operator.connect();
  try {
    const { rows } = await operator.query<{ id: string; type: string; payload: string; journey: string | null }>(
      `select original_event_id as id, jsonb_typeof(payload) as type, payload::text, payload -> 'journey' ->> 'id' as journey
       from outbox_relay.dead_letters order by 1`,
    );
    const found = rows.map(({ id, journey, payload, type }) => [id, type, payload, journey]);
    assert.deepEqual(found, [
      ["bytes", "string", '"/wA="', null],
      ["empty", "string", '""', null],
      ["json", "object", '{"big": 12345678901234567890, "journey": {"id": 7}}', "7"],
      ["null", "string", String.raw`"\"\\u0000\""`, null],
      ["text", "string", '"no JSON: Zürich"', null],
    ]);
    const seed = `select id, original_event_id, source_schema, source_table, event_type, payload, failure_reason, failure_count,
      first_failed_at, last_failed_at, created_at from outbox_relay.dead_letters
      where source_schema = 'journey_matcher' and payload @> '{"journey": {}}'`;
    assert.equal((await operator.query(seed)).rowCount, 1);
  } finally {
    await operator.end();
  }
});
