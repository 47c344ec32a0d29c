import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { KafkaPublisherOptions } from "../publishers/kafka/kafka-config.ts";
import { loadConfig, loadDatabaseConfig, loadSettings } from "./load-config.ts";
import { ConfigProblems } from "./reading/config-problems.ts";
import { changedSettings, effectiveSettings, originText, valueText } from "./reading/effective-settings.ts";
import type { SettingName } from "./settings/settings.ts";
import { policyOf } from "./sources/presets.ts";

const REST = { OUTBOX_SCHEMAS: "a", KAFKA_BROKERS: "k:9092" };
const BASE = { ...REST, DATABASE_URL: "postgres://me:pw@db/shop" };

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "outbox-relay-load-"));
});
after(() => rmSync(folder, { recursive: true }));

interface Given {
  readonly env?: Readonly<Record<string, string>>;
  readonly yaml?: string;
  readonly flags?: readonly string[];
}

function sourcesOf({ env = {}, yaml, flags = [] }: Given) {
  if (yaml !== undefined) writeFileSync(join(folder, "c.yaml"), yaml);
  return { env, cwd: folder, flags, ...(yaml === undefined ? {} : { file: "c.yaml" }) };
}

const configOf = async (given: Given) => (await loadConfig(sourcesOf(given))).config;

async function problemsOf(given: Given): Promise<readonly string[]> {
  try {
    await configOf(given);
  } catch (error) {
    assert.ok(error instanceof ConfigProblems, String(error));
    return error.problems;
  }
  return [];
}

test("A14 flags override the environment, which overrides the file, which overrides the defaults", async () => {
  const yaml = "http: { port: 1001 }\nlog: { level: warn }\nservice: { name: mine }";
  const env = { ...BASE, PORT: "1002", LOG_LEVEL: "error" };
  const { http, log, service, lanes } = await configOf({ yaml, env, flags: ["http.port=1003"] });
  assert.deepEqual([http.port, log.level, service, lanes], [1_003, "error", "mine", 4]);
  const byName = await configOf({ env: BASE, flags: ["PORT=7", "SERVER_PORT=7", "retry.maxAttempts=2"] });
  assert.deepEqual([byName.http.port, byName.policy.retry.attemptsMax], [7, 2]);
});

test("A14 a higher level can name another destination than a lower one without a problem", async () => {
  const yaml = "destination: { kafka: { brokers: [other:1] } }";
  const { KAFKA_BROKERS: _, ...env } = BASE;
  assert.equal((await configOf({ yaml, env, flags: ["OUTBOX_DESTINATION=stdout:"] })).destinations[0]?.kind, "stdout");
  assert.equal(
    (await configOf({ yaml, env: { ...env, OUTBOX_DESTINATION: "stdout:" } })).destinations[0]?.kind,
    "stdout",
  );
  assert.equal((await configOf({ yaml, env })).destinations[0]?.kind, "kafka");
});

test("A14 a setting twice in one level must have the same value", async () => {
  assert.deepEqual(await problemsOf({ env: BASE, flags: ["PORT=1", "PORT=2"] }), [
    "--set PORT is set twice with different values: keep one of them",
  ]);
  assert.deepEqual(await problemsOf({ env: BASE, flags: ["PORT=1", "http.port=2"] }), [
    "--set PORT and --set http.port are the same setting but differ: keep one of them",
  ]);
  assert.deepEqual(await problemsOf({ env: { ...BASE, POLL_INTERVAL_MS: "2000", POLL_INTERVAL: "2s" } }), []);
  assert.match(
    (await problemsOf({ env: BASE, yaml: "database: { password: a, passwordFile: /nowhere }" })).join(),
    /passwordFile in c\.yaml:1 names a file that cannot be read/,
  );
});

test("A14 an unknown flag is refused with the nearest name", async () => {
  const problems = await problemsOf({ env: BASE, flags: ["http.prot=1", "KAFKA_BROKER=x", "PORT", "xyzzy.quux=1"] });
  assert.deepEqual(problems, [
    "--set http.prot is not a setting: did you mean http.port?",
    "--set KAFKA_BROKER is not a setting: did you mean KAFKA_BROKERS?",
    "--set PORT has no value: write --set PORT=value",
    "--set xyzzy.quux is not a setting: `outbox-relay config print` lists all settings",
  ]);
});

test("A14 every value has an origin, and secrets are never shown", async () => {
  const env = { ...BASE, ADMIN_TOKEN: "canary-1", LOG_LEVEL: "warn" };
  const yaml = `database:\n  schema: relay\nhttp: { port: 9 }\nlog: { loki: { url: "http://u:canary-2@loki" } }`;
  const read = await loadSettings(sourcesOf({ env, yaml, flags: ["LANES=8", "KAFKA_OAUTH_TOKEN=canary-3"] }));
  const settings = effectiveSettings(read);
  const shown = (name: SettingName) => {
    const it = settings.find((setting) => setting.name === name)!;
    return [valueText(name, it.value), originText(it.origin)];
  };
  assert.deepEqual(shown("LANES"), ["8", "flag --set LANES"]);
  assert.deepEqual(shown("LOG_LEVEL"), ["warn", "environment LOG_LEVEL"]);
  assert.deepEqual(shown("DATABASE_SCHEMA"), ["relay", "file c.yaml:2 database.schema"]);
  assert.deepEqual(shown("SHUTDOWN_TIMEOUT_MS"), ["10s", "default"]);
  assert.deepEqual(shown("POLL_INTERVAL_MS"), ["500ms, worker 5s", "preset of the table"]);
  assert.deepEqual(shown("RETENTION"), ["", "not set"]);
  assert.deepEqual(shown("DATABASE_URL"), ["postgres://me:***@db/shop", "environment DATABASE_URL"]);
  assert.deepEqual(shown("LOKI_HOST")[0], "http://u:***@loki");
  assert.deepEqual(shown("ADMIN_TOKEN")[0], "***");
  assert.doesNotMatch(JSON.stringify(settings), /canary|:pw@/);
  for (const secret of ["canary-1", "canary-2", "canary-3", "pw"]) assert.ok(read.secrets.includes(secret), secret);
});

test("G5 a reload reports the changed settings by name", async () => {
  const one = await loadSettings(sourcesOf({ env: { ...BASE, KAFKA_BROKERS: "a:1,b:2" } }));
  const two = await loadSettings(sourcesOf({ env: { ...BASE, KAFKA_BROKERS: "a:1", PORT: "3012", LANES: "9" } }));
  assert.deepEqual(changedSettings(one, two), ["LANES", "KAFKA_BROKERS"]);
});

test("C1 C2 the worker's own variables work, in seconds, and five retries are six attempts", async () => {
  const { database, destinations, policy } = await configOf({
    env: {
      ConnectionStrings__EventStore: `Host=db;Port=5433;Database=event store;Username=me;Password="p;w=1";Pooling=true`,
      OutboxDispatcher__PollingIntervalSeconds: "7",
      OutboxDispatcher__BatchSize: "50",
      OutboxDispatcher__MaxRetryAttempts: "5",
      OutboxDispatcher__BaseRetryDelaySeconds: "30",
      OutboxDispatcher__MaxRetryDelaySeconds: "3600",
      RabbitMq__HostName: "rabbit",
      RabbitMq__Port: "5672",
      RabbitMq__ExchangeName: "events",
      OUTBOX_TABLE: "app.outbox",
    },
  });
  assert.equal(database.url, "postgres://me:p%3Bw%3D1@db:5433/event%20store");
  const { pollIntervalMs, retry } = policyOf("worker", policy);
  assert.deepEqual([destinations[0]?.limits?.batchSize, pollIntervalMs], [50, 7_000]);
  assert.deepEqual(retry, policyOf("worker", { ...policy, retry: NO_RETRY }).retry, "30 s, 1 h, 6: as the preset");
  const same = { OutboxDispatcher__PollingIntervalSeconds: "5", POLL_INTERVAL_MS: "5000" };
  assert.deepEqual(await problemsOf({ env: { ...BASE, ...same } }), []);
  assert.match(
    (await problemsOf({ env: { ...BASE, OutboxDispatcher__BatchSise: "5" } })).join(),
    /did you mean OutboxDispatcher__BatchSize/,
  );
  assert.match(
    (await problemsOf({ env: { ...BASE, OutboxDispatcher__PollingIntervalSeconds: "soon" } })).join(),
    /^OutboxDispatcher__PollingIntervalSeconds is "soon": write a duration .* or a number of seconds/,
  );
  assert.match(
    (await problemsOf({ env: { ...REST, ConnectionStrings__EventStore: "nonsense" } })).join(),
    /^DATABASE_URL \(ConnectionStrings__EventStore\) is invalid/,
  );
});

const NO_RETRY = { attemptsMax: undefined, initialMs: undefined, maxMs: undefined, jitter: undefined };

test("C1 usual .NET connection strings are converted, and addresses stay unchanged", async () => {
  const cases: [string, string][] = [
    ["postgres://a:b@h/d", "postgres://a:b@h/d"],
    ["Server=h;Database=d;User Id=me;Password=x", "postgres://me:x@h/d"],
    ["host=h; port=1 ; database=d; username=me; password='it''s'; SSL Mode=Disable", "postgres://me:it's@h:1/d"],
    ["Host=::1;Database=d", "postgres://[::1]/d"],
  ];
  for (const [written, url] of cases) {
    const { database } = await loadDatabaseConfig(sourcesOf({ env: { ConnectionStrings__EventStore: written } }));
    assert.equal(database.url, url);
  }
  const tls = await loadDatabaseConfig(
    sourcesOf({ env: { ConnectionStrings__EventStore: "Host=h;Database=d;SslMode=VerifyFull" } }),
  );
  assert.deepEqual(tls.database.ssl, {});
  const { secrets } = await loadDatabaseConfig(
    sourcesOf({ env: { ConnectionStrings__EventStore: "Host=h;Username=me;Password=p w" } }),
  );
  assert.ok(secrets.includes("p w"));
});

test("B5 the Open Outbox Relay's variables all work", async () => {
  const config = await configOf({
    env: {
      STORAGE_URL: "postgres://h/d",
      PUBLISHER_TYPE: "kafka",
      PUBLISHER_URL: "k:1",
      REAP_BATCH_SIZE: "20",
      RELAY_ID: "r",
      BATCH_SIZE: "10",
      RETRY_MAX_ATTEMPTS: "25",
      LEASE_TIMEOUT: "1m30s",
    },
  });
  assert.deepEqual(config.limits, { reapRowsMax: 20 });
  assert.deepEqual(config.destinations[0]?.limits, { batchSize: 10, transactionSize: 10 });
  assert.deepEqual([config.instanceName, config.policy.retry.attemptsMax], ["r", 25]);
  assert.deepEqual([config.timing.leaseMs, config.sources.claimLeaseMs], [10_000, 90_000]);
});

test("A14 contradicting settings are refused with both names", async () => {
  const cases: [Record<string, string>, RegExp][] = [
    [{ PUBLISH_TIMEOUT: "10s" }, /PUBLISH_TIMEOUT \(10s\) must be below LEASE_TIMEOUT \(10s\): lower it/],
    [{ PUBLISH_TIMEOUT: "5s", LEASE_TIMEOUT: "4s" }, /PUBLISH_TIMEOUT \(5s\) must be below LEASE_TIMEOUT \(4s\)/],
    [{ RETRY_INITIAL_DELAY_MS: "10m", RETRY_MAX_DELAY_MS: "1m" }, /RETRY_INITIAL_DELAY_MS .* is above/],
    [{ METRICS_PORT: "3012" }, /METRICS_PORT and PORT are both 3012/],
    [{ KAFKA_PASSWORD: "x" }, /KAFKA_PASSWORD is set but KAFKA_USERNAME is not/],
    [{ DATABASE_URL: "postgres://:x@h/d" }, /a password but no user: set PGUSER/],
    [{ DATABASE_URL: "postgres://h/d", PGPASSWORD: "x" }, /a password but no user/],
    [{ DATABASE_URL: "", PGHOST: "h", PGPASSWORD: "x" }, /a password but no user/],
    [{ OUTBOX_SCHEMAS: "" }, /OUTBOX_SCHEMAS is "": write one or more items/],
    [{ KAFKA_SSL: "flase" }, /KAFKA_SSL is "flase": write true, false/],
    [{ DELIVERY: "twice" }, /DELIVERY is "twice": write exactly-once or at-least-once/],
  ];
  for (const [env, expected] of cases) assert.match((await problemsOf({ env: { ...BASE, ...env } })).join(), expected);
  const { destinations, timing } = await configOf({ env: { ...BASE, PUBLISH_TIMEOUT: "8s" } });
  const options = destinations[0]!.options as KafkaPublisherOptions;
  assert.deepEqual([timing.publishTimeoutMs, options.requestTimeoutMs], [8_000, 6_400]);
  const named = await configOf({ env: { ...BASE, DATABASE_URL: "postgres://h/d", PGUSER: "u", PGPASSWORD: "x" } });
  assert.equal(named.database.url, "postgres://u:x@h/d");
  assert.deepEqual(
    (await configOf({ yaml: "database: { url: postgres://h/d }", env: { ...REST, PGHOST: "x" } })).warnings,
    ["PGHOST: no effect, because DATABASE_URL is set"],
  );
});

test("G3 commands that need only the database read it from the file and the flags too", async () => {
  const yaml = "database: { url: postgres://h/d, schema: mine }";
  const { database, relaySchema } = await loadDatabaseConfig(sourcesOf({ yaml, flags: ["database.schema=other"] }));
  assert.deepEqual([database.url, relaySchema], ["postgres://h/d", "other"]);
  await assert.rejects(loadDatabaseConfig(sourcesOf({ yaml: "http: { port: 1 }" })), /DATABASE_URL \(database\.url\)/);
  const offline = await loadDatabaseConfig(sourcesOf({}), { isOffline: true });
  assert.equal(offline.relaySchema, "outbox_relay");
});
