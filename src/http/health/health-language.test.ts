import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { until } from "../../../test/servers/until.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../postgres/pool.ts";
import { memoryPublisher } from "../../publishers/memory/memory-publisher.ts";
import { createRelay } from "../../relay/relay.ts";
import { postgresSource } from "../../sources/postgres/postgres-source.ts";
import { healthOf } from "./health.ts";
import { FACTS } from "./health-fixture.test.ts";

let server: PostgresServer;
let database: Database;

before(async () => {
  server = await startPostgres({ version: 15, language: "de" });
  database = openDatabase({ url: server.url });
  await migrateUp(database);
});
after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

/** The reason why a relay cannot mark the table's rows, as its log has it and as the health shows it. */
async function reasonsOf(schema: string, sql: string) {
  await server.query(`create schema ${schema}; ${sql}`);
  const out = memoryPublisher();
  const relay = createRelay({
    sources: [postgresSource({ database, table: `${schema}.outbox` })],
    destinations: { out },
    timing: { shutdownMs: 200 },
  });
  const logged: string[] = [];
  relay.on("SourceBroken", ({ reason }) => logged.push(reason));
  await relay.start();
  await until("the source is broken", () => logged.length > 0);
  await relay.stop();
  const [reason = ""] = logged;
  const broken = [{ pipeline: `${schema}.outbox->out`, code: "DATABASE_REFUSED", reason } as const];
  return { logged: reason, shown: JSON.stringify(healthOf({ ...FACTS, broken })) };
}

const COLUMNS =
  "id bigserial, created_at timestamptz default now(), event_type text default 't', aggregate_id text, payload jsonb default '{}', published_at timestamptz";

test("H1 A20 health shows no value of a row that the server quotes in its own language", async () => {
  const { logged, shown } = await reasonsOf(
    "guarded",
    `create table guarded.outbox (${COLUMNS}, primary key (id));
     insert into guarded.outbox (id, aggregate_id) values (1, 'cust-7');
     create function guarded.refuse() returns trigger language plpgsql as $$
       begin perform new.aggregate_id::uuid; return new; end $$;
     create trigger refuse before update on guarded.outbox for each row execute function guarded.refuse()`,
  );
  assert.match(logged, /uuid: (»cust-7«|"cust-7")/);
  assert.doesNotMatch(shown, /cust-7/);
  assert.match(shown, /cannot be marked in the table.*\[ROW_UNMARKED\]/);
});

test("H1 A20 an id that several rows share is read in any language, and not shown by health", async () => {
  const { logged, shown } = await reasonsOf(
    "twice",
    `create table twice.outbox (${COLUMNS}, at int) partition by range (at);
     create table twice.part partition of twice.outbox for values from (0) to (10);
     insert into twice.outbox (id, at) values (4711, 1), (4711, 2)`,
  );
  assert.match(logged, /have the id 4711; only one of them was sent \[ID_NOT_UNIQUE\]/);
  assert.doesNotMatch(shown, /4711/);
});
