import assert from "node:assert/strict";
import { test } from "node:test";
import { SETTING_NAMES, settingOf, settingsHelp } from "../settings/settings.ts";
import { ConfigProblems } from "./config-problems.ts";
import type { Environment } from "./environment.ts";
import { readSettings } from "./read-settings.ts";

function problemsOf(env: Environment, readText?: (path: string) => string): readonly string[] {
  try {
    readSettings({ env, ...(readText === undefined ? {} : { readText }) });
  } catch (error) {
    assert.ok(error instanceof ConfigProblems);
    assert.equal(error.code, "CONFIG_INVALID");
    return error.problems;
  }
  return [];
}

const settingsOf = (env: Environment) => readSettings({ env }).settings;

test("A14 without variables the documented defaults apply", () => {
  assert.deepEqual(
    { ...settingsOf({}) },
    {
      DATABASE_SCHEMA: "outbox_relay",
      API_REQUESTS_PER_SECOND: 100,
      OIDC_ROLE_CLAIM: "roles",
      OIDC_SESSION: 900_000,
      SERVICE_NAME: "outbox-relay",
      LOG_LEVEL: "info",
      LOG_EVENTS: "failures",
      HOST: "127.0.0.1",
      PORT: 3012,
      SHUTDOWN_TIMEOUT_MS: 10_000,
      METRICS_PUSH_INTERVAL: 15_000,
      NOTIFY_INTERVAL: 300_000,
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_TRACES_SAMPLER_ARG: 0.01,
      RECORD_DELIVERED: "50",
      RECORD_RETENTION: 604_800_000,
      LANES: 4,
      LOG_START: "beginning",
      MANAGED_PAYLOAD: "text",
      MANAGED_PARTITION: "day",
      MANAGED_WAKE_UP: true,
      KURRENTDB_SUBSCRIPTION: "all",
      REQUEST_SUFFIXES: ["Created", "Queued"],
      REQUEST_CHECKPOINTS: "redis",
      REQUEST_MARKER_TTL: 2_592_000_000,
      OUTBOX_DYNAMODB_TABLE: "outbox",
      OUTBOX_DYNAMODB_CHECKPOINTS: "outbox-relay-checkpoints",
      OUTBOX_DYNAMODB_TIMEOUT: 30_000,
      OUTBOX_DYNAMODB_SWEEP_INTERVAL: 5_000,
    },
  );
});

test("A14 durations take a unit or a number in the unit of the name", () => {
  const durations: [string, number][] = [
    ["500", 500],
    ["500ms", 500],
    ["1.5s", 1_500],
    ["3m", 180_000],
    ["1h", 3_600_000],
    ["2 S", 2_000],
  ];
  for (const [written, ms] of durations) assert.equal(settingsOf({ POLL_INTERVAL_MS: written }).POLL_INTERVAL_MS, ms);
  assert.equal(settingsOf({ RETENTION: "7d" }).RETENTION, 604_800_000);
  for (const written of ["5x", "-1", "1e9", "0", "ms", "1s2", "25h"]) {
    assert.match(
      problemsOf({ POLL_INTERVAL_MS: written })[0] ?? "",
      /^POLL_INTERVAL_MS is ".*": write a duration such as/,
    );
  }
  assert.match(problemsOf({ LEASE_TIMEOUT: "10" })[0] ?? "", /LEASE_TIMEOUT is "10".*from 2s to 1h/);
});

test("A14 an invalid value is refused with the setting's name and what to write", () => {
  const refused: [Environment, RegExp][] = [
    [{ PORT: "70000" }, /^PORT is "70000": write a whole number from 1 to 65535$/],
    [{ PORT: "12x" }, /^PORT is "12x"/],
    [{ LOG_LEVEL: "wran" }, /^LOG_LEVEL is "wran": write trace, debug, .* or silent \(did you mean warn\?\)$/],
    [{ KAFKA_SSL: "flase" }, /^KAFKA_SSL is "flase": write true, .*\(did you mean false\?\)$/],
    [{ DELIVERY: "once" }, /^DELIVERY is "once": write exactly-once or at-least-once/],
    [{ OUTBOX_SCHEMAS: "" }, /^OUTBOX_SCHEMAS is "": write one or more items/],
    [{ OUTBOX_SCHEMAS: "a,,b" }, /^OUTBOX_SCHEMAS is "a,,b"/],
    [{ SERVICE_NAME: "my service" }, /^SERVICE_NAME is "my service": write letters, digits/],
    [{ MAX_RETRIES: "0" }, /^MAX_RETRIES is "0": write a whole number from 1 to 1000$/],
    [{ ON_EXHAUSTED: "parc" }, /did you mean park/],
    [{ HEADERS_TEMPLATE: "x" }, /^HEADERS_TEMPLATE is "x": write comma-separated name=value pairs/],
    [{ KAFKA_SSL_CA: "/etc/ca.pem" }, /^KAFKA_SSL_CA is invalid: it is not PEM text.*_FILE/],
  ];
  for (const [env, message] of refused) assert.match(problemsOf(env)[0] ?? "", message);
  assert.equal(problemsOf({ PORT: "x", LOG_LEVEL: "y", KAFKA_SSL: "z" }).length, 3, "all of them at once");
});

test("A14 a name and its alias can write the same value differently, and are refused if they differ", () => {
  assert.equal(settingsOf({ POLL_INTERVAL_MS: "500", POLL_INTERVAL: "500ms" }).POLL_INTERVAL_MS, 500);
  assert.equal(settingsOf({ RETRY_MAX_ATTEMPTS: "7" }).MAX_RETRIES, 7);
  assert.equal(settingsOf({ STORAGE_URL: "postgres://h/d" }).DATABASE_URL, "postgres://h/d");
  assert.deepEqual(problemsOf({ MAX_RETRIES: "7", RETRY_MAX_ATTEMPTS: "8" }), [
    "MAX_RETRIES and RETRY_MAX_ATTEMPTS are the same setting but differ: keep one of them",
  ]);
});

test("A20 secrets can come from files, but only from one origin", () => {
  const files = new Map([["/run/secrets/kafka", "s3cret\n"]]);
  const readFile = (path: string) => files.get(path) ?? assert.fail(`no file ${path}`);
  const { settings, secrets } = readSettings({
    env: { KAFKA_PASSWORD_FILE: "/run/secrets/kafka" },
    readText: readFile,
  });
  assert.equal(settings.KAFKA_PASSWORD, "s3cret");
  assert.deepEqual(secrets, ["s3cret"]);
  assert.match(problemsOf({ KAFKA_PASSWORD: "a", KAFKA_PASSWORD_FILE: "/b" }, () => "c")[0] ?? "", /are both set/);
  const missing = problemsOf({ PGPASSWORD_FILE: "/nowhere/at/all" });
  assert.match(missing[0] ?? "", /^PGPASSWORD_FILE names a file that cannot be read: ENOENT/);
  const withFile = SETTING_NAMES.filter((name) => settingOf(name).secret !== null);
  for (const name of withFile) assert.ok(settingsHelp().includes(`${name}_FILE`), name);
});

test("A20 no error shows a secret's value, and the password of an address is a secret", () => {
  const { secrets } = readSettings({
    env: { DATABASE_URL: "postgres://me:p%40ss@host/db", KAFKA_OAUTH_TOKEN: "tok" },
  });
  assert.deepEqual(secrets.toSorted(), ["p%40ss", "p@ss", "tok"]);
  const problems = problemsOf({ KAFKA_SSL_KEY: "hunter2", KAFKA_OAUTH_TOKEN: "hunter2".repeat(20_000) }).join();
  assert.match(problems, /KAFKA_OAUTH_TOKEN is invalid.*KAFKA_SSL_KEY is invalid/);
  assert.doesNotMatch(problems, /hunter2/);
});

test("A14 an empty variable counts as unset", () => {
  assert.equal(settingsOf({ PORT: "", KAFKA_USERNAME: "" }).PORT, 3012);
});

test("A14 a typo in one of our names is refused with the nearest name; other programs' variables are ignored", () => {
  assert.deepEqual(problemsOf({ KAFKA_BROKER: "h:1" }), ["KAFKA_BROKER is not a setting: did you mean KAFKA_BROKERS?"]);
  assert.deepEqual(problemsOf({ OUTBOX_SCHEMA: "a" }), [
    "OUTBOX_SCHEMA is not a setting: did you mean OUTBOX_SCHEMAS?",
  ]);
  assert.deepEqual(problemsOf({ RETRY_MAX_DELAYMS: "1" }), [
    "RETRY_MAX_DELAYMS is not a setting: did you mean RETRY_MAX_DELAY_MS?",
  ]);
  assert.deepEqual(problemsOf({ KAFKA_PASSWORD_FLIE: "/x" }).length, 1);
  const foreign = {
    KAFKA_HEAP_OPTS: "-Xmx1G",
    KAFKA_SERVICE_HOST: "10.0.0.1",
    OUTBOX_RELAY_PORT: "tcp://x",
    PATH: "/",
  };
  assert.deepEqual(readSettings({ env: foreign }).warnings, []);
  assert.deepEqual(readSettings({ env: { OUTBOX_SOMETHING_ELSE: "1" } }).warnings, [
    "OUTBOX_SOMETHING_ELSE is not a setting of outbox-relay and has no effect",
  ]);
});
