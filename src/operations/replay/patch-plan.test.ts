import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../../test/servers/postgres.ts";
import { openAsRelay } from "../../../test/servers/relay-role.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import { registerPipeline } from "../../postgres/pipelines.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { editDeadLetter } from "../dead-letters/edit-dead-letter.ts";
import { pruneEdits } from "../dead-letters/edits.ts";
import { showEvent } from "../events/event-show.ts";
import type { OperationTarget } from "../events/event-source.ts";
import { shownRules } from "../events/redact-shown.ts";
import { listPlanItems } from "./frozen-plan.ts";
import { previewPatch } from "./patch-items.ts";
import { makePlan } from "./plan-replay.ts";
import { playRound } from "./plan-round.ts";
import { planSources } from "./plan-sources.ts";
import { startPlan } from "./plan-state.ts";

const PIPELINE = "app.outbox->out";
const SOURCE = { schema: "app", table: "outbox" };
const RUNNER = "00000000-0000-4000-8000-000000000001";
const MIA = { by: "mia", reason: "no customer id", via: "cli" } as const;

let server: PostgresServer;
let database: Database;
let target: OperationTarget;

before(async () => {
  server = await startPostgres({ version: 18 });
  database = await openAsRelay(server, {
    sql: `create schema app; create table app.outbox (id text primary key,
    aggregate_id text, event_type text not null, payload text not null, headers jsonb,
    created_at timestamptz not null default clock_timestamp(), position bigint generated always as identity,
    published boolean not null default false)`,
    names: [SOURCE],
  });
  target = { database, columns: {}, shown: shownRules(["card"]) };
  await transaction(database.pool, writeSettings(database, "a test"), (session) =>
    registerPipeline(session, database, { name: PIPELINE, source: SOURCE, lanes: 1, takes: null }),
  );
});
after(async () => {
  await database.close();
  await server[Symbol.asyncDispose]();
});

async function bury(id: string, payload: string, type = "order.placed"): Promise<void> {
  await server.query("insert into app.outbox (id, aggregate_id, event_type, payload) values ($1, $1, $2, $3)", [
    id,
    type,
    payload,
  ]);
  await server.query(
    `insert into outbox_relay.holds (pipeline, lane, event_id, event_key, state, parks, attempts, reason)
     values ($1, 0, $2, $2, 'dead', true, 1, 'refused')`,
    [PIPELINE, id],
  );
  await server.query(
    `insert into outbox_relay.failed_events (pipeline, original_event_id, source_schema, source_table, event_type,
       event_key, payload, failure_reason) values ($1, $2, 'app', 'outbox', $3, $2, $4, 'refused')`,
    [PIPELINE, id, type, Buffer.from(payload)],
  );
}

const payloadOf = async (id: string) =>
  (await server.query<{ payload: string }>("select payload from app.outbox where id = $1", [id])).rows[0]?.payload;

test("F3 a patch over an error group is previewed, changes what is sent, keeps both payloads, and skips what it cannot change", async () => {
  await bury("p1", '{"total":12345678901234567890.10,"customer":{"name":"Ann"},"card":"4111"}');
  await bury("p2", "no json at all", "note.made");
  const patch = '{"customer":{"id":"c-1"}}';
  const plan = await makePlan(target, { action: "replay", subject: "dead", all: true, patch, author: MIA });
  const examples = await previewPatch(target, plan);
  assert.deepEqual(
    examples.map(({ after: now, before: was, id, problem }) => [id, was.text, now?.text, problem]),
    [
      [
        "p1",
        '{"total":12345678901234567890.10,"customer":{"name":"Ann"},"card":"[redacted]"}',
        '{"total":12345678901234567890.10,"customer":{"name":"Ann","id":"c-1"},"card":"[redacted]"}',
        null,
      ],
      ["p2", "no json at all", undefined, "its payload is not JSON"],
    ],
  );
  assert.equal(await payloadOf("p1"), '{"total":12345678901234567890.10,"customer":{"name":"Ann"},"card":"4111"}');

  await startPlan(database, plan.id, MIA);
  const sources = await planSources(target);
  await playRound(database, plan.id, RUNNER, 100, sources);
  await playRound(database, plan.id, RUNNER, 100, sources);
  const now = '{"total":12345678901234567890.10,"customer":{"name":"Ann","id":"c-1"},"card":"4111"}';
  assert.equal(await payloadOf("p1"), now, "hidden fields are kept");
  assert.equal(await payloadOf("p2"), "no json at all");
  const { items } = await listPlanItems(database, plan.id);
  const [first, second] = items.map(({ id, reason, state }) => [id, state, reason]);
  assert.deepEqual(first, ["p1", "sent", null]);
  assert.deepEqual(second?.[0], "p2");
  if (second?.[1] !== "waiting") assert.deepEqual(second, ["p2", "left", "its payload is not JSON"]);

  const [shown] = await showEvent(target, "p1");
  const [edit] = shown?.edits ?? [];
  assert.deepEqual(
    [edit?.by, edit?.plan, edit?.after.payload?.text],
    ["mia", plan.id, now.replace("4111", "[redacted]")],
  );
  assert.match(edit?.before.payload?.text ?? "", /"customer":\{"name":"Ann"\}/);
  const [hidden] = await showEvent(target, "p1", { maySeePayloads: false });
  assert.deepEqual([hidden?.edits[0]?.before.payload, hidden?.edits[0]?.after.payload], [null, null]);
  const { rows } = await server.query("select detail from outbox_relay.audit");
  assert.doesNotMatch(JSON.stringify(rows), /c-1/, "the audit contains no content");
});

test("F3 a patch needs a reason, dead letters, and valid JSON", async () => {
  const base = { action: "replay", subject: "dead", all: true, patch: '{"a":1}', author: MIA } as const;
  await assert.rejects(makePlan(target, { ...base, author: { by: "mia" } }), /reason/);
  await assert.rejects(makePlan(target, { ...base, action: "discard" }), /needs a replay of dead letters/);
  await assert.rejects(makePlan(target, { ...base, patch: "[]" }), /merge patch/);
  await assert.rejects(makePlan(target, { ...base, patch: '{"card":"[redacted]"}' }), /REDACT hides/);
});

test("F3 an edit keeps the old and the new content, with headers, for a month", async () => {
  await bury("e1", '{"n":1}');
  const payload = Buffer.from('{"n":2}');
  await editDeadLetter(target, { id: "e1", payload, headers: { tenant: "acme" }, author: MIA });
  const [shown] = await showEvent(target, "e1");
  const [edit] = shown?.edits ?? [];
  assert.deepEqual([edit?.before.payload?.text, edit?.after.payload?.text, edit?.plan], ['{"n":1}', '{"n":2}', null]);
  assert.deepEqual([edit?.before.headers, edit?.after.headers], [{}, { tenant: "acme" }]);
  await server.query("update outbox_relay.edits set at = at - interval '31 days' where event_id = 'e1'");
  assert.equal(await pruneEdits(database), 1);
  assert.deepEqual((await showEvent(target, "e1"))[0]?.edits, []);
});
