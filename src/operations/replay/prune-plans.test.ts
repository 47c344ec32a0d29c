import assert from "node:assert/strict";
import { test } from "node:test";
import { startPostgres } from "../../../test/servers/postgres.ts";
import { migrateUp } from "../../postgres/migrations/migrate.ts";
import { openDatabase } from "../../postgres/pool.ts";
import { prunePlans } from "./prune-plans.ts";

test("F3 plans that ended a month ago are deleted with their items; running and younger ones stay", async () => {
  await using server = await startPostgres({ version: 15 });
  const database = openDatabase({ url: server.url });
  await migrateUp(database);
  await server.query(`insert into outbox_relay.replay_plans (action, subject, filter, state, created_by, created_at, finished_at)
    select 'replay', 'dead', f, s, 'ann', clock_timestamp() - c, clock_timestamp() - e from (values
      ('old', 'done', interval '40 days', interval '31 days'), ('never begun', 'planned', '31 days', null),
      ('still at work', 'running', '40 days', null), ('just ended', 'done', '40 days', '29 days')) v (f, s, c, e)`);
  await server.query(`insert into outbox_relay.replay_items (plan, seq, pipeline, source, event_id, event_type)
    select id, 1, 'p', 's.t', 'e', 't' from outbox_relay.replay_plans`);
  assert.equal(await prunePlans(database), 2);
  const left = await server.query(
    "select filter from outbox_relay.replay_plans join outbox_relay.replay_items on plan = id order by 1",
  );
  assert.deepEqual(
    left.rows.map(({ filter }) => filter),
    ["just ended", "still at work"],
  );
  assert.equal(await prunePlans(database), 0);
  await database.close();
});
