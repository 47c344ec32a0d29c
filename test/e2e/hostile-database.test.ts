import assert from "node:assert/strict";
import { test } from "node:test";
import { makeHostile } from "../servers/hostile-defaults.ts";
import { until } from "../servers/until.ts";
import { deadLetterStage, deliveredBy, untilDead } from "./dead-letter-stage.ts";
import { serverOfFile } from "./service-stage.ts";

const server = serverOfFile();
const FLAG = "orders.outbox";
const OPEN = "public.openoutbox_events";
const WORKER = "mail.outbox";
const FACTS = "app.facts";
/** The role's time zone is hours away from UTC: a time that is read wrong is wrong by hours. */
const RECENT_MS = 10 * 60_000;

test("H1 A17 G6 the service and what its commands show and do are right under hostile defaults of the role", async () => {
  await using it = await deadLetterStage(server());
  await it.sql(`create schema app; create table ${FACTS} (id bigint generated always as identity primary key,
    event_type text not null, aggregate_id text, payload text, headers jsonb, created_at timestamptz default now());
    grant usage on schema app to ${it.role}; grant select on ${FACTS} to ${it.role}`);
  await makeHostile(server(), it.role);
  await using running = await it.run({ ON_EXHAUSTED: "park", OUTBOX_EVENT_TABLES: FACTS, OUTBOX_COLUMNS: "xid=none" });
  const { a1, a2 } = await it.write(FLAG, "a1! a2 b1");
  await it.write(OPEN, "c1! c2 d1");
  await it.write(WORKER, "w1! w2 x1");
  await it.write(FACTS, "f1! f2 g1");
  await untilDead(it, 4);
  const sorted = () => deliveredBy(running).split(" ").sort().join(" ");
  await until("the other keys are delivered", () => sorted() === "b1 d1 g1 x1");

  const json = async (...args: string[]) => {
    const { code, stderr, stdout } = await it.command(...args, "-o", "json");
    // Dead letters are trouble for `status`.
    assert.ok(code === 0 || (code === 3 && args[0] === "status"), `${args.join(" ")}: ${stderr}`);
    return JSON.parse(stdout);
  };
  const isRecent = (time: string) => assert.ok(Math.abs(Date.parse(time) - Date.now()) < RECENT_MS, time);
  const { events } = await json("events", "list", "--state", "dead", "--since", "10m");
  assert.equal(events.length, 4);
  for (const { createdAt } of events) isRecent(createdAt);
  assert.equal((await json("events", "list", "--key", "a", "--source", FLAG)).events.length, 2);
  const { deadLetters } = await json("dlq", "show", a1!);
  assert.match(deadLetters[0].payload.text, /"number": ?9007199254740993/);
  assert.equal((await json("dlq", "groups")).groups.length, 1);
  const { keys } = await json("keys", "list");
  assert.deepEqual(keys.map(({ key }: { key: string }) => key).toSorted(), ["a", "c", "f", "w"]);
  assert.equal((await json("status")).pipelines.length, 5);
  for (const args of [["lanes", "list"], ["audit"], ["top"], ["log", "list"], ["events", "show", a2!]])
    await json(...args);
  const doctor = await it.command("doctor", "-o", "json");
  const findings = Object.values(JSON.parse(doctor.stdout)).flat() as { severity?: string; what?: string }[];
  const errors = findings.filter(({ severity }) => severity === "error");
  assert.deepEqual(errors, [], doctor.stderr);

  await it.mend(FLAG, a1!);
  assert.equal((await it.command("dlq", "replay", a1!, "--yes")).code, 0);
  assert.equal((await it.command("keys", "skip", OPEN, "c", "--reason", "test")).code, 0);
  assert.equal((await it.command("dlq", "discard", "--source", FACTS, "--reason", "test", "--yes")).code, 0);
  await until("the keys go on", () => sorted() === "a1 a2 b1 c2 d1 f2 g1 x1");
  assert.ok(deliveredBy(running).indexOf("a1") < deliveredBy(running).indexOf("a2"));
});
