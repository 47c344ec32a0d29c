import assert from "node:assert/strict";
import { test } from "node:test";
import { scheduledRetry } from "../../core/retry-policy.ts";
import type { IntentRelay } from "../../routing/intent-relay.ts";
import { ConfigProblems } from "../reading/config-problems.ts";
import { readSettings } from "../reading/read-settings.ts";
import { filledRoute } from "../routes-config.ts";
import { serviceConfig } from "../service-config.ts";
import type { LoadedIntentRelay } from "./intent-relays.ts";
import { policyOf, routePolicyOf } from "./presets.ts";

const BASE = { DATABASE_URL: "postgres://me@db/shop", OUTBOX_TABLE: "app.intents" };
const SOURCE = { schema: "app", table: "intents" };

function loaded(name: string, relay: Partial<IntentRelay> = {}): LoadedIntentRelay {
  const type = `Type of ${name}`;
  const whole = { type, target: { url: "stdout:" }, translate: () => ({ body: { name } }), ...relay };
  return { name, file: `relays/${name}-relay.ts`, relay: whole };
}

const configOf = (env: Record<string, string>, ...relays: LoadedIntentRelay[]) =>
  serviceConfig(readSettings({ env: { ...BASE, ...env } }), relays);

function problemsOf(env: Record<string, string>, ...relays: LoadedIntentRelay[]): string {
  try {
    configOf(env, ...relays);
  } catch (error) {
    assert.ok(error instanceof ConfigProblems);
    return error.problems.join("\n");
  }
  return assert.fail("the relays were accepted");
}

test("D1 relays with their own targets need no other destination; each target is named after its relay", () => {
  const { destinations, routes } = configOf({}, loaded("a"), loaded("b", { target: { url: "kafka://k:9092" } }));
  assert.deepEqual(
    destinations.map(({ kind, name }) => [name, kind]),
    [
      ["a", "stdout"],
      ["b", "kafka"],
    ],
  );
  assert.deepEqual(
    routes.map(({ destination, types }) => [destination, types]),
    [
      ["a", ["Type of a"]],
      ["b", ["Type of b"]],
    ],
  );
});

test("D1 a relay can use a configured destination; templates for all messages do not apply to it", () => {
  const env = { OUTBOX_DESTINATION: "stdout:", TOPIC_TEMPLATE: "all.{type}", HEADERS_TEMPLATE: "x={type}" };
  const { destinations, routes } = configOf(env, loaded("a", { target: { destination: "stdout", topic: "mine" } }));
  assert.deepEqual([destinations.length, routes.length], [1, 1]);
  const event = { id: "1", type: "Type of a", key: null, payload: Buffer.from(""), headers: {}, correlationId: null };
  const route = filledRoute(routes[0]!, SOURCE, assert.fail);
  assert.equal(route.topic?.({ ...event, createdAt: null }), "mine");
  assert.equal(route.headers?.({ ...event, createdAt: null }).x, undefined);
});

test("D5 a relay's own retry schedule and onExhausted override the table's", () => {
  const { policy, routes } = configOf(
    {},
    loaded("a", { retry: scheduledRetry([1, 2]), onExhausted: "park" }),
    loaded("b"),
  );
  const of = (index: number) => routePolicyOf("intent", policy, routes[index]!.policy);
  assert.deepEqual(of(0).retry, scheduledRetry([1, 2]));
  assert.equal(of(0).onExhausted, "park");
  assert.deepEqual(of(1), policyOf("intent", policy));
});

test("D5 a listed schedule is a setting, and computed delays beside it are a contradiction", () => {
  const listed = configOf({ RETRY_SCHEDULE: "0s,30s,5m,30m", OUTBOX_DESTINATION: "stdout:" }).policy;
  assert.deepEqual(policyOf("flag", listed).retry, scheduledRetry([0, 30_000, 300_000, 1_800_000]));
  for (const [name, value] of [
    ["MAX_RETRIES", "3"],
    ["RETRY_INITIAL_DELAY_MS", "1s"],
    ["RETRY_JITTER", "0.1"],
  ] as const) {
    const problems = problemsOf({ RETRY_SCHEDULE: "30s", [name]: value, OUTBOX_DESTINATION: "stdout:" });
    assert.match(problems, new RegExp(`RETRY_SCHEDULE .* ${name} .*keep one of them`));
  }
  assert.match(problemsOf({ RETRY_SCHEDULE: "soon", OUTBOX_DESTINATION: "stdout:" }), /RETRY_SCHEDULE/);
});

test("D1 written routes can stand beside relays, but not for the same type", () => {
  const env = { OUTBOX_DESTINATION: "stdout:" };
  const beside = configOf({ ...env, OUTBOX_ROUTES: '[{"types": "order.*", "destination": "stdout"}]' }, loaded("a"));
  assert.deepEqual(
    beside.routes.map(({ destination }) => destination),
    ["a", "stdout"],
  );
  assert.match(
    problemsOf({ ...env, OUTBOX_ROUTES: '[{"types": "Type of a", "destination": "stdout"}]' }, loaded("a")),
    /routes\[0\] and relays\/a-relay\.ts both match "Type of a"/,
  );
});

test("D1 a problem of a target is reported with its file, without a password", () => {
  assert.match(
    problemsOf({}, loaded("a", { target: { url: "carrier-pigeon://x:hunter2@y" } })),
    /^relays\/a-relay\.ts: target\.url starts with "carrier-pigeon:"/,
  );
  assert.doesNotMatch(problemsOf({}, loaded("a", { target: { url: "carrier-pigeon://x:hunter2@y" } })), /hunter2/);
  assert.match(
    problemsOf({ OUTBOX_DESTINATION: "stdout:" }, loaded("a", { target: { destination: "stdut" } })),
    /relays\/a-relay\.ts: target\.destination is "stdut".* did you mean stdout/,
  );
  assert.match(
    problemsOf({ OUTBOX_DESTINATION: "stdout:" }, loaded("stdout")),
    /a destination named stdout already exists/,
  );
  const { secrets } = configOf({}, loaded("a", { target: { url: "http://me:p%40ss@host/x" } }));
  assert.ok(secrets.includes("p@ss") && secrets.includes("p%40ss"));
});

test("D2 OUTBOX_ONLY must match a route or a relay", () => {
  assert.match(
    problemsOf({ OUTBOX_ONLY: "Other" }, loaded("a")),
    /OUTBOX_ONLY is Other, which matches no route and no intent relay/,
  );
  assert.deepEqual(configOf({ OUTBOX_ONLY: "Type of a" }, loaded("a")).sources.only, ["Type of a"]);
});
