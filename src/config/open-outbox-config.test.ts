import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigProblems } from "./reading/config-problems.ts";
import type { Environment } from "./reading/environment.ts";
import { readSettings } from "./reading/read-settings.ts";
import { serviceConfig } from "./service-config.ts";

const BASE = { DATABASE_URL: "postgres://me:pw@db:5433/shop", OUTBOX_SCHEMAS: "a,b", KAFKA_BROKERS: "k1:9092" };

const configFromEnvironment = (env: Environment) => serviceConfig(readSettings({ env }));

function problemsOf(env: Environment): string {
  try {
    configFromEnvironment(env);
  } catch (error) {
    assert.ok(error instanceof ConfigProblems, String(error));
    return error.problems.join("\n");
  }
  return "";
}

/** The names and documented defaults of the Open Outbox Relay, with the publisher and address that its example has. */
const OPEN_OUTBOX = {
  STORAGE_TYPE: "postgres",
  STORAGE_TABLE_NAME: "shop_events",
  STORAGE_URL: "postgres://postgres:postgres@localhost:5432/postgres",
  PUBLISHER_TYPE: "stdout",
  PUBLISHER_URL: "nats://localhost:4222",
  POLL_INTERVAL: "500ms",
  BATCH_SIZE: "100",
  LEASE_TIMEOUT: "3m",
  REAP_BATCH_SIZE: "100",
  PUBLISHER_CONNECT_RETRY_INTERVAL: "5s",
  HEALTH_CHECK_INTERVAL: "5s",
  SERVER_PORT: ":8080",
  ENVIRONMENT: "production",
  ENABLE_STATS: "true",
  RELAY_ID: "",
  RETRY_MAX_ATTEMPTS: "25",
  RETRY_BASE_DELAY: "1s",
  RETRY_MAX_DELAY: "24h",
  RETRY_JITTER: "0.15",
  KAFKA_BATCH_SIZE: "1",
  KAFKA_BATCH_BYTES: "10485760",
  KAFKA_BATCH_TIMEOUT: "10ms",
  KAFKA_COMPRESSION: "snappy",
  KAFKA_REQUIRED_ACKS: "all",
  KAFKA_ASYNC: "false",
  KAFKA_MAX_ATTEMPTS: "5",
  KAFKA_WRITE_TIMEOUT: "10s",
  KAFKA_READ_TIMEOUT: "10s",
  KAFKA_CONNECTION_TIMEOUT: "10s",
  NATS_PUBLISH_TIMEOUT: "5s",
  NATS_CONNECTION_TIMEOUT: "10s",
  REDIS_CONNECTION_TIMEOUT: "5s",
  REDIS_WRITE_TIMEOUT: "1s",
  OTEL_TRACES_EXPORTER: "none",
  OTEL_METRICS_EXPORTER: "none",
  OTEL_EXPORTER_OTLP_ENDPOINT: "http://localhost:4317",
  OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
  OTEL_BSP_EXPORT_TIMEOUT: "30000",
  OTEL_BSP_SCHEDULE_DELAY: "5000",
  OTEL_METRIC_EXPORT_INTERVAL: "60000",
};

test("B5 the Open Outbox Relay's whole environment works, and what has no effect is named", () => {
  const config = configFromEnvironment(OPEN_OUTBOX);
  assert.deepEqual(config.sources.tables, ["public.shop_events"]);
  assert.deepEqual(config.http, { host: "0.0.0.0", port: 8_080 });
  assert.deepEqual(
    config.destinations.map(({ kind, name }) => [kind, name]),
    [["stdout", "stdout"]],
  );
  assert.equal(config.telemetry.tracing, null, "the exporter is none");
  const told = config.warnings.join("\n");
  const effective =
    /^(?:STORAGE|PUBLISHER_(?:TYPE|URL)|POLL|BATCH|LEASE|REAP|RETRY|SERVER|RELAY|OTEL_TRACES|OTEL_\w+_ENDPOINT)/;
  const asBefore = ["ENVIRONMENT", "ENABLE_STATS", "KAFKA_REQUIRED_ACKS", "KAFKA_ASYNC", "KAFKA_COMPRESSION"];
  for (const name of Object.keys(OPEN_OUTBOX)) {
    if (effective.test(name) || asBefore.includes(name) || name === "OTEL_METRICS_EXPORTER") continue;
    assert.match(told, new RegExp(`\\b${name}\\b`), `${name} is named`);
  }
  for (const name of asBefore) assert.doesNotMatch(told, new RegExp(`\\b${name}\\b`), `${name} is as it was`);
  assert.match(told, /PUBLISHER_TYPE is stdout, so the destination's URL has no effect/);
  const anothers = configFromEnvironment({ ...BASE, HEALTH_CHECK_INTERVAL: "5s" }).warnings.join();
  assert.doesNotMatch(anothers, /HEALTH_CHECK_INTERVAL/, "it belongs to another program");
});

test("B5 values of the Open Outbox Relay that ask for what this relay does not do are named", () => {
  const asked = { KAFKA_REQUIRED_ACKS: "one", KAFKA_ASYNC: "true", ENVIRONMENT: "development", ENABLE_STATS: "false" };
  const { warnings } = configFromEnvironment({ ...OPEN_OUTBOX, ...asked, OTEL_METRICS_EXPORTER: "prometheus" });
  for (const [name, value] of Object.entries(asked)) {
    assert.ok(
      warnings.some((it) => it.startsWith(`${name}=${value} has no effect: `)),
      name,
    );
  }
  assert.ok(warnings.some((it) => it.startsWith("OTEL_METRICS_EXPORTER=prometheus has no effect: ")));
  assert.match(problemsOf({ ...OPEN_OUTBOX, STORAGE_TYPE: "mysql" }), /STORAGE_TYPE is "mysql": .* postgres only/);
});

test("B5 the address to listen on may be a port, :port or host:port, and HOST precedes it", () => {
  const httpOf = (env: Environment) => configFromEnvironment({ ...OPEN_OUTBOX, ...env }).http;
  assert.deepEqual(httpOf({ SERVER_PORT: "9000" }), { host: "127.0.0.1", port: 9_000 });
  assert.deepEqual(httpOf({ SERVER_PORT: "localhost:9000" }), { host: "localhost", port: 9_000 });
  assert.deepEqual(httpOf({ SERVER_PORT: "[::1]:9000" }), { host: "::1", port: 9_000 });
  assert.deepEqual(httpOf({ SERVER_PORT: ":9000", HOST: "10.0.0.1" }), { host: "10.0.0.1", port: 9_000 });
  assert.match(problemsOf({ ...OPEN_OUTBOX, SERVER_PORT: ":http" }), /^SERVER_PORT is ":http": write a whole number/);
});

test("B5 the publisher's type is never overruled by an address of another kind", () => {
  const kindsOf = (env: Environment) =>
    configFromEnvironment({ STORAGE_URL: "postgres://h/d", ...env }).destinations.map(({ kind }) => kind);
  assert.deepEqual(kindsOf({ PUBLISHER_TYPE: "stdout" }), ["stdout"]);
  assert.deepEqual(kindsOf({ PUBLISHER_TYPE: "null" }), ["discard"]);
  assert.deepEqual(kindsOf({ PUBLISHER_TYPE: "null", PUBLISHER_URL: "redis://h:6379" }), ["discard"]);
  assert.deepEqual(kindsOf({ PUBLISHER_TYPE: "kafka", PUBLISHER_URL: "h:9092,i:9092" }), ["kafka"]);
  assert.deepEqual(kindsOf({ PUBLISHER_TYPE: "redis", PUBLISHER_URL: "rediss://h:6379" }), ["redis"]);
  const problems = (env: Environment) => problemsOf({ STORAGE_URL: "postgres://h/d", ...env });
  assert.match(
    problems({ PUBLISHER_TYPE: "kafka", PUBLISHER_URL: "nats://h:4222" }),
    /PUBLISHER_TYPE is "kafka", but OUTBOX_DESTINATION has another scheme/,
  );
  assert.match(problems({ PUBLISHER_TYPE: "stdout", KAFKA_BROKERS: "h:9092" }), /name different destinations/);
  assert.match(problems({ PUBLISHER_TYPE: "kafka" }), /The destination is missing/);
  const lower = readSettings({
    env: { STORAGE_URL: "postgres://h/d", PUBLISHER_TYPE: "stdout" },
    file: {
      name: "f",
      value: { destination: { kafka: { brokers: ["k:1"] } } },
      hasVariables: false,
      lineOf: () => null,
    },
  });
  assert.deepEqual(
    serviceConfig(lower).destinations.map(({ kind }) => kind),
    ["stdout"],
  );
});
