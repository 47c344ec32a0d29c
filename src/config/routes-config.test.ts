import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import type { OutboxEvent } from "../core/event.ts";
import type { KafkaPublisherOptions } from "../publishers/kafka/kafka-config.ts";
import { messageOf } from "../routing/message.ts";
import { ConfigProblems } from "./reading/config-problems.ts";
import { effectiveSettings } from "./reading/effective-settings.ts";
import { type ReadSettings, readSettings } from "./reading/read-settings.ts";
import { filledRoute, restrictedTo } from "./routes-config.ts";
import { serviceConfig } from "./service-config.ts";
import { policyOf, routePolicyOf } from "./sources/presets.ts";

const GROUPS = `
database: { url: "postgres://me@db/shop" }
sources: { schemas: [a] }
`;

function read(yaml: string, env: Readonly<Record<string, string>> = {}): ReadSettings {
  const file = { name: "f.yaml", value: parse(GROUPS + yaml), hasVariables: true, lineOf: () => null };
  return readSettings({ env, file });
}

const configOf = (yaml: string, env: Readonly<Record<string, string>> = {}) => serviceConfig(read(yaml, env));

function problemsOf(yaml: string, env: Readonly<Record<string, string>> = {}): string {
  try {
    configOf(yaml, env);
  } catch (error) {
    assert.ok(error instanceof ConfigProblems, String(error));
    return error.problems.join("\n");
  }
  return "";
}

const TWO = `
destinations:
  orders: { url: "kafka://k1:9092", delivery: at-least-once, rateLimit: 100, kafka: { sasl: { username: me, password: "\${PW}" } } }
  audit: { url: "discard:" }
`;

function event(changes: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: "1",
    type: "order.placed",
    key: "k",
    payload: Buffer.from("{}"),
    headers: {},
    correlationId: null,
    createdAt: null,
    ...changes,
  };
}

const SOURCE = { schema: "s", table: "o" };
const lacking = (what: string): never => {
  throw new Error(`lacks ${what}`);
};

test("D1 several destinations have their own names, settings and limits, and routes use them", () => {
  const yaml = `${TWO}routes:\n  - { types: "order.*", destination: orders }\n  - { destination: audit }\n`;
  const { destinations, routes, secrets } = configOf(yaml, { PW: "hunter2" });
  assert.deepEqual(
    destinations.map(({ name, kind, ratePerSecond }) => [name, kind, ratePerSecond]),
    [
      ["orders", "kafka", 100],
      ["audit", "discard", null],
    ],
  );
  const { brokers, delivery, name, sasl } = destinations[0]!.options as KafkaPublisherOptions;
  assert.deepEqual([name, brokers, delivery], ["orders", ["k1:9092"], "at-least-once"]);
  assert.deepEqual(sasl, { mechanism: "PLAIN", username: "me", password: "hunter2" });
  assert.ok(secrets.includes("hunter2"));
  assert.deepEqual(
    routes.map(({ types, destination }) => [types, destination]),
    [
      [["order.*"], "orders"],
      [null, "audit"],
    ],
  );
});

test("A20 passwords of named destinations are never shown", () => {
  const yaml = `destinations: { a: { url: "kafka://k:1", kafka: { sasl: { username: u, password: hunter2 } } } }`;
  const env = { OUTBOX_DESTINATIONS: '{"a": {"url": "kafka://k:1", "kafka": {"sasl": {"password": "hunter3"}}}}' };
  for (const settings of [read(yaml), read("", env)]) {
    const shown = JSON.stringify(effectiveSettings(settings));
    assert.match(shown, /kafka:\/\/k:1/);
    assert.doesNotMatch(shown, /hunter/);
    assert.equal(settings.secrets.length, 1);
  }
});

test("A14 problems of a named destination or a route are reported with the location and the fix", () => {
  const routed = (route: string) => `${TWO}routes: [${route}]\n`;
  const cases: [string, RegExp][] = [
    [TWO, /OUTBOX_ROUTES.* is missing: set which events go to orders, audit/],
    [routed("{}"), /routes\[0\]\.destination is missing: write one of orders, audit/],
    [routed("{ destination: order }"), /routes\[0\] leads to the unknown destination "order"\. Did you mean "orders"/],
    [routed("{ destinaton: orders }"), /\[0\]\.destinaton in f\.yaml is not a setting: did you mean destination\?/],
    [
      routed("{ destination: orders, retry: { maxAtempts: 1 } }"),
      /\[0\]\.retry\.maxAtempts in f\.yaml is not a setting: did you mean/,
    ],
    [routed("{ destination: orders, topic: '{typ}' }"), /routes\[0\]\.topic: .*did you mean \{type\}/],
    [routed("{ destination: orders, when: { tenant: x } }"), /routes\[0\]\.when has the unknown field "tenant"/],
    [routed("{ destination: orders, retry: { schedule: [1s, soon] } }"), /routes\[0\]\.retry\.schedule has "soon"/],
    [routed("{ destination: orders, retry: { schedule: [1s], jitter: 0.1 } }"), /both a schedule and computed delays/],
    [routed("{ destination: orders }, { destination: audit }"), /routes\[1\] can never take "\*"/],
    [
      "destinations: { a: { urll: 'stdout:' } }",
      /destinations\.a\.urll is not a setting: did you mean destinations\.a\.url\?/,
    ],
    ["destinations: { a: { url: 'pulsar://u:hunter2@h' } }", /destinations\.a\.url starts with "pulsar:"/],
    ["destinations: { a: {} }", /The destination is missing: set destinations\.a\.kafka\.brokers/],
    ["destinations: {}", /OUTBOX_DESTINATIONS is empty/],
    ["destinations: { 'a->b': { url: 'stdout:' } }", /a name of letters, digits/],
    ["destinations: [1]", /destinations in f\.yaml is invalid: write it like \{orders: \{url:/],
    ["routes: '{{{'", /routes in f\.yaml is "\{\{\{": write it like \[\{types:/],
    ["routes: []", /routes in f\.yaml is "\[\]": write it like/],
    ["destinations: 7", /destinations in f\.yaml has the wrong type/],
    ["destinations: { a: { url: 'stdout:', delivery: exactly-once } }", /destinations\.a\.delivery is "exactly-once"/],
    ["destinations: { a: { url: 'stdout:' } }\ndestination: { url: 'stdout:' }", /both name destinations/],
  ];
  for (const [yaml, expected] of cases) {
    const problems = problemsOf(yaml, { PW: "x" });
    assert.match(problems, expected);
    assert.doesNotMatch(problems, /hunter2/);
  }
});

test("G2 one destination of the environment overrides the list of the file", () => {
  const { destinations } = configOf(TWO, { PW: "x", OUTBOX_DESTINATION: "stdout:" });
  assert.deepEqual(
    destinations.map(({ name }) => name),
    ["stdout"],
  );
});

test("A16 a route's own templates, headers, envelope and content type make its messages", () => {
  const yaml = `destination: { url: "stdout:" }
messages: { topic: "all.{type}", headers: { x-all: "{schema}" }, contentType: text/plain }
routes:
  - { types: [order.*], topic: "eu.{type}", key: "{header:tenant}", headers: { x-own: "{id}" } }
  - { types: [bill.*], envelope: cloudevents-binary }
  - {}
`;
  const { routes } = configOf(yaml);
  const [own, bill, rest] = routes.map((route) => filledRoute(route, SOURCE, lacking));
  const order = messageOf(own!, event({ headers: { tenant: "t" } }));
  assert.deepEqual([order.topic, order.key], ["eu.order.placed", "t"]);
  assert.deepEqual([order.headers["x-own"], order.headers["x-all"]], ["1", "s"]);
  assert.equal(order.headers["content-type"], "text/plain");
  const { headers } = messageOf(bill!, event());
  assert.deepEqual([headers["ce-source"], headers["content-type"]], ["/outbox-relay/s/o", "text/plain"]);
  assert.equal(messageOf(rest!, event({ headers: { "content-type": "a/b" } })).headers["content-type"], "a/b");
  assert.equal(messageOf(rest!, event()).topic, "all.order.placed");
});

test("D5 delays can be listed, for all events and for those of a route", () => {
  const yaml = `destination: { url: "stdout:" }
routes:
  - { types: a, retry: { schedule: [0s, 30s, 5m] }, onExhausted: skip }
  - { types: b, retry: { maxAttempts: 3 } }
  - {}
`;
  const { policy, routes } = configOf(yaml, { RETRY_SCHEDULE: "1s,2m" });
  const [a, b, rest] = routes.map((route) => routePolicyOf("flag", policy, route.policy));
  assert.deepEqual([a?.retry, a?.onExhausted], [{ kind: "schedule", delaysMs: [0, 30_000, 300_000] }, "skip"]);
  assert.deepEqual(b?.retry.kind === "exponential" && b.retry.attemptsMax, 3);
  assert.deepEqual(rest?.retry, { kind: "schedule", delaysMs: [1_000, 120_000] });
  assert.deepEqual(policyOf("worker", policy).retry, { kind: "schedule", delaysMs: [1_000, 120_000] });
  const both = { RETRY_SCHEDULE: "1s", MAX_RETRIES: "3" };
  assert.match(problemsOf(yaml, both), /RETRY_SCHEDULE.* lists the delays, but MAX_RETRIES.* computes them/);
  assert.match(problemsOf(yaml, { RETRY_SCHEDULE: "1s,never" }), /RETRY_SCHEDULE.* has "never": write a duration/);
});

test("D2 a relay for some types delivers what they and a route have in common", () => {
  const yaml = `destination: { url: "stdout:" }
routes:
  - { types: [order.placed, bill.*] }
  - { types: ["order.*"] }
  - {}
`;
  const { routes } = configOf(yaml);
  const typesFor = (only: string[]) => restrictedTo(only, routes).map(({ types }) => types);
  assert.deepEqual(typesFor(["bill.paid"]), [["bill.paid"]]);
  assert.deepEqual(typesFor(["order.*"]), [["order.placed"], ["order.*"]]);
  assert.deepEqual(typesFor(["x"]), [["x"]]);
});
