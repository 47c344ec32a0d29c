import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigProblems } from "../reading/config-problems.ts";
import type { Environment } from "../reading/environment.ts";
import { readSettings } from "../reading/read-settings.ts";
import { serviceConfig } from "../service-config.ts";

const BASE = { DATABASE_URL: "postgres://me:pw@db:5433/shop", OUTBOX_DESTINATION: "stdout:" };

const configOf = (env: Environment) => serviceConfig(readSettings({ env: { ...BASE, ...env } }));

function problemsOf(env: Environment): string {
  try {
    configOf(env);
  } catch (error) {
    assert.ok(error instanceof ConfigProblems, String(error));
    return error.problems.join("\n");
  }
  return "";
}

test("D9 A14 logs are named in three lists, and need no other sources", () => {
  const { logs, sources } = configOf({
    OUTBOX_MANAGED: "shop.outbox",
    OUTBOX_EVENT_TABLES: "store.events,store.more",
    OUTBOX_WAL: "legacy.outboxevent,message:orders",
    OUTBOX_WAL_PRESET: "debezium",
    MANAGED_PAYLOAD: "bytea",
    MANAGED_PARTITION: "hour",
    MANAGED_WAKE_UP: "true",
    SUBSCRIBER_LAG_MAX: "30d",
    LOG_START: "2026-05-01T02:00:00+02:00",
  });
  assert.deepEqual([sources.schemas, sources.tables], [[], []]);
  assert.deepEqual(
    logs.named.map(({ preset, schema, table }) => `${preset} ${schema}.${table}`),
    ["managed shop.outbox", "tail store.events", "tail store.more", "wal legacy.outboxevent", "wal message.orders"],
  );
  assert.deepEqual(logs.managed, { payload: "bytea", partition: "1 hour", wakeUp: true });
  assert.deepEqual([logs.walPreset, logs.lagMaxMs], ["debezium", 30 * 86_400_000]);
  assert.deepEqual(logs.start, new Date("2026-05-01T00:00:00Z"));
  assert.deepEqual(configOf({ OUTBOX_MANAGED: "outbox" }).logs.start, "beginning");
});

test("D9 A14 every problem of a log is reported by its name, with what to write", () => {
  const problems = problemsOf({
    OUTBOX_TABLE: "shop.outbox",
    OUTBOX_MANAGED: "a.b.c,shop.outbox,shop.log,shop.log",
    OUTBOX_EVENT_TABLES: "shop.log",
    OUTBOX_WAL: "message:,message:two words",
    LOG_START: "begining",
  });
  assert.match(problems, /OUTBOX_MANAGED: "a.b.c" is not a table name of the form schema.table/);
  assert.match(problems, /shop.outbox is in OUTBOX_TABLE and in OUTBOX_MANAGED: a table can be read only once/);
  assert.match(problems, /shop.log is in OUTBOX_MANAGED twice/);
  assert.match(problems, /shop.log is in OUTBOX_MANAGED and in OUTBOX_EVENT_TABLES/);
  assert.match(problems, /OUTBOX_WAL has "message:": write message:PREFIX/);
  assert.match(problems, /LOG_START is "begining": write beginning, now, or a time .*did you mean beginning\?/);
  const log = { OUTBOX_MANAGED: "shop.log" };
  assert.match(problemsOf({ ...log, LOG_START: "2026-05-01T02:00:00" }), /LOG_START is .*write beginning, now/);
  assert.match(problemsOf({ ...log, LOG_START: "2999-01-01" }), /LOG_START is 2999-01-01, which is in the future/);
  assert.match(
    problemsOf({ ...log, MANAGED_PARTITON: "day" }),
    /MANAGED_PARTITON is not a setting: did you mean MANAGED_/,
  );
  assert.match(problemsOf({ ...log, MANAGED_PARTITION: "dayly" }), /write hour, day, week or month \(did you mean day/);
  assert.match(problemsOf({ ...log, OUTBOX_WAL_PRESET: "plain" }), /OUTBOX_WAL_PRESET is set but OUTBOX_WAL is not/);
  assert.match(problemsOf({ OUTBOX_STORE: "redis://r", ...log }), /OUTBOX_STORE and OUTBOX_MANAGED are both set/);
});

test("D9 a subscriber is a route with a name, its own start and its own progress", () => {
  const { routes, subscribers } = configOf({
    OUTBOX_MANAGED: "shop.log",
    OUTBOX_SUBSCRIBERS: "[{name: audit, types: [order.*], topic: 'a.{type}', start: now}, {name: search}]",
  });
  assert.deepEqual(routes, [], "what is in a queue has no way but a written one");
  assert.deepEqual(
    subscribers.map(({ name, route, start }) => [name, start, route.types, route.destination]),
    [
      ["audit", "now", ["order.*"], "stdout"],
      ["search", null, null, "stdout"],
    ],
  );
});

test("D9 A14 every problem of a subscriber is reported with its location", () => {
  const log = { OUTBOX_MANAGED: "shop.log" };
  const of = (written: string, more: Environment = {}) => problemsOf({ ...log, ...more, OUTBOX_SUBSCRIBERS: written });
  assert.match(of("[{name: Audit}]"), /\[0\].name: a name of at most 31 lower-case letters/);
  assert.match(of("[{types: a}]"), /\[0\].name: /);
  assert.match(of("[{name: a, strat: now}]"), /\[0\].strat is not a setting: did you mean start\?/);
  assert.match(of("[{name: a, start: yesterday}]"), /subscribers\[0\].start is "yesterday": write beginning, now/);
  assert.match(of("[{name: a}, {name: a}]"), /OUTBOX_SUBSCRIBERS has the name a twice: progress is stored by name/);
  assert.match(of("[{name: a, destination: kafak}]"), /subscribers\[0\] leads to the unknown destination "kafak"/);
  assert.match(of("[{name: a, when: {colour: red}}]"), /subscribers\[0\]/);
  assert.match(of("[{name: a}]", { OUTBOX_ONLY: "x" }), /OUTBOX_ONLY and OUTBOX_SUBSCRIBERS are both set/);
  assert.match(of("[{name: a}]", { OUTBOX_ROUTES: "[{types: x}]" }), /OUTBOX_ROUTES has no effect/);
  assert.equal(of("[{name: a}]", { OUTBOX_ROUTES: "[{types: x}]", OUTBOX_SCHEMAS: "orders" }), "");
  const two = { OUTBOX_DESTINATION: "", OUTBOX_DESTINATIONS: "{one: {url: 'stdout:'}, two: {url: 'discard:'}}" };
  assert.match(of("[{name: a}]", two), /subscribers\[0\].destination is missing: write one of one, two/);
});
