import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { OutboxEvent } from "../core/event.ts";
import { RETRY_PRESETS } from "../core/retry-policy.ts";
import type { KafkaPublisherOptions } from "../publishers/kafka/kafka-config.ts";
import { ConfigProblems } from "./reading/config-problems.ts";
import type { Environment } from "./reading/environment.ts";
import { readSettings } from "./reading/read-settings.ts";
import { serviceConfig } from "./service-config.ts";
import { policyOf } from "./sources/presets.ts";

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

function kafkaOf(env: Environment) {
  const [destination] = configFromEnvironment({ ...BASE, ...env }).destinations;
  assert.ok(destination?.kind === "kafka");
  return destination.options as KafkaPublisherOptions;
}

test("A14 missing database, sources and destination are reported by name, all at once", () => {
  const problems = problemsOf({});
  assert.match(problems, /DATABASE_URL is missing: write postgres:/);
  assert.match(problems, /set OUTBOX_SCHEMAS to schema,schema or \*, or OUTBOX_TABLE/);
  assert.match(problems, /set KAFKA_BROKERS=host:port, .*or OUTBOX_DESTINATION to kafka:/);
});

test("A14 the environment alone can describe the whole service", () => {
  const config = configFromEnvironment({ ...BASE, RETENTION: "7d", LANES: "8", PORT: "4000", RELAY_ID: "r1" });
  assert.equal(config.database.url, "postgres://me:pw@db:5433/shop");
  assert.equal(config.database.relaySchema, "outbox_relay");
  assert.deepEqual(config.sources.schemas, ["a", "b"]);
  assert.deepEqual([config.lanes, config.retentionMs, config.instanceName], [8, 604_800_000, "r1"]);
  assert.deepEqual(config.http, { host: "127.0.0.1", port: 4_000 });
  assert.deepEqual(kafkaOf({}).brokers, ["k1:9092"]);
  assert.equal(kafkaOf({}).delivery, "exactly-once");
  assert.equal(configFromEnvironment({ ...BASE, OUTBOX_SCHEMAS: "*" }).sources.schemas, "*");
});

test("A14 the PG variables replace an address, or complete it", () => {
  const { DATABASE_URL: _, ...rest } = BASE;
  const pg = { PGHOST: "h", PGPORT: "5555", PGDATABASE: "d", PGUSER: "u", PGPASSWORD: "p" };
  const { host, port, database, user, password } = configFromEnvironment({ ...rest, ...pg }).database;
  assert.deepEqual([host, port, database, user, password], ["h", 5_555, "d", "u", "p"]);
  const filled = configFromEnvironment({ ...BASE, DATABASE_URL: "postgres://me@db/shop", PGPASSWORD: "a/b" });
  assert.equal(filled.database.url, "postgres://me:a%2Fb@db/shop");
});

test("H1 several hosts of the database are named in the address or in PGHOST; a wrong attribute is reported", () => {
  const hosts = [{ host: "one", port: 5_433 }, { host: "two" }];
  const { database } = configFromEnvironment({ ...BASE, DATABASE_URL: "postgres://me@one:5433,two/shop" });
  assert.deepEqual([database.hosts, database.targetSession], [hosts, "read-write"]);
  const { DATABASE_URL: _, ...rest } = BASE;
  assert.deepEqual(configFromEnvironment({ ...rest, PGHOST: "one,two", PGDATABASE: "d" }).database.hosts, [
    { host: "one" },
    { host: "two" },
  ]);
  assert.match(
    problemsOf({ ...BASE, DATABASE_URL: "postgres://one,two/shop?target_session_attrs=standby" }),
    /target_session_attrs=standby; the relay accepts/,
  );
});

test("H1 PGPORT has one port for all hosts of PGHOST or one for each, and PGTARGETSESSIONATTRS chooses among them, as in libpq", () => {
  const { DATABASE_URL: _, ...rest } = BASE;
  const several = { ...rest, PGHOST: "one,two", PGDATABASE: "d" };
  const hostsOf = (env: Environment) => configFromEnvironment({ ...several, ...env }).database.hosts;
  const same = { port: 6_000 };
  assert.deepEqual(hostsOf({ PGPORT: "6000" }), [
    { host: "one", ...same },
    { host: "two", ...same },
  ]);
  assert.deepEqual(hostsOf({ PGPORT: "6000,6001" }), [
    { host: "one", ...same },
    { host: "two", port: 6_001 },
  ]);
  assert.deepEqual(hostsOf({ PGPORT: ",6000" }), [
    { host: "one", port: 5_432 },
    { host: "two", ...same },
  ]);
  assert.match(problemsOf({ ...several, PGPORT: "1,2,3" }), /PGPORT has 3 ports and PGHOST 2 hosts: write one port/);
  assert.match(problemsOf({ ...several, PGPORT: "1,x" }), /PGPORT is "1,x": write a whole number from 1 to 65535/);
  const targetOf = (env: Environment) => {
    const { hosts, targetSession } = configFromEnvironment({ ...rest, PGTARGETSESSIONATTRS: "any", ...env }).database;
    return [targetSession, hosts?.map(({ host }) => host).join()];
  };
  assert.deepEqual(targetOf({ PGHOST: "one,two" }), ["any", "one,two"]);
  assert.deepEqual(targetOf({ PGHOST: "one" }), ["any", "one"]);
  assert.deepEqual(targetOf({ DATABASE_URL: "postgres://me@one,two/shop" }), ["any", "one,two"]);
  const primary = "postgres://me@one,two/shop?target_session_attrs=primary";
  assert.deepEqual(targetOf({ DATABASE_URL: primary }), ["primary", "one,two"], "the address wins");
  assert.match(
    problemsOf({ ...several, PGTARGETSESSIONATTRS: "standby" }),
    /^PGTARGETSESSIONATTRS is "standby": write any/,
  );
});

test("A20 TLS modes of Postgres mean the same as in every other client, in the address as in PGSSLMODE", () => {
  const sslOf = (env: Environment) => configFromEnvironment({ ...BASE, ...env }).database.ssl;
  assert.equal(sslOf({}), undefined);
  assert.equal(sslOf({ PGSSLMODE: "disable" }), false);
  assert.deepEqual(sslOf({ PGSSLMODE: "require" }), { rejectUnauthorized: false });
  assert.deepEqual(sslOf({ PGSSLMODE: "verify-full" }), {});
  const inAddress = { DATABASE_URL: "postgres://me:pw@db/shop?sslmode=require&application_name=x" };
  assert.deepEqual(sslOf(inAddress), { rejectUnauthorized: false });
  assert.equal(
    configFromEnvironment({ ...BASE, ...inAddress }).database.url,
    "postgres://me:pw@db/shop?application_name=x",
  );
  assert.match(
    problemsOf({ ...BASE, DATABASE_URL: "postgres://db/shop?sslmode=prefer" }),
    /sslmode=prefer: write one of/,
  );
  assert.match(problemsOf({ ...BASE, PGSSLMODE: "prefer" }), /^PGSSLMODE is "prefer": write disable, require/);
  assert.match(problemsOf({ ...BASE, PGSSLMODE: "verify-ca", PGSSLROOTCERT: "/no/ca" }), /PGSSLROOTCERT names a file/);
});

test("A14 an invalid address is refused without being shown", () => {
  for (const address of ["mysql://root:hunter2@h/d", "postgres:/root:hunter2@h/d", "root:hunter2@h/d"]) {
    const problems = problemsOf({ ...BASE, DATABASE_URL: address });
    assert.match(problems, /DATABASE_URL is invalid: write postgres:/);
    assert.doesNotMatch(problems, /hunter2/);
  }
});

test("G2 an address alone configures every kind of destination, at its usual port", () => {
  const { KAFKA_BROKERS: _, ...none } = BASE;
  const reached = (address: string, more: Environment = {}) => {
    const [it] = configFromEnvironment({ ...none, ...more, OUTBOX_DESTINATION: address }).destinations;
    return [it?.kind, it?.name, it?.addresses.join()];
  };
  assert.deepEqual(reached("kafka://k"), ["kafka", "kafka", "k:9092"]);
  assert.deepEqual(reached("amqp://u:p@r/shop?exchange=events"), ["rabbitmq", "rabbitmq", "r:5672"]);
  assert.deepEqual(reached("amqps://u:p@r?exchange=events"), ["rabbitmq", "rabbitmq", "r:5671"]);
  assert.deepEqual(reached("nats://n?stream=S"), ["nats", "nats", "n:4222"]);
  assert.deepEqual(reached("redis://r/0"), ["redis", "redis", "r:6379"]);
  assert.deepEqual(reached("rediss://r/1"), ["redis", "redis", "r:6379"]);
  assert.deepEqual(reached("bullmq+redis://r/0?queue=Q"), ["bullmq", "bullmq", "r:6379"]);
  assert.deepEqual(reached("sqs://eu-west-1/q.fifo"), ["sqs", "sqs", "sqs.eu-west-1.amazonaws.com:443"]);
  const own = { AWS_ENDPOINT_URL_SQS: "http://localhost:9324" };
  assert.deepEqual(reached("sqs://eu-west-1/q", own), ["sqs", "sqs", "localhost:9324"]);
  assert.deepEqual(reached("http://h/hooks"), ["http", "http", "h:80"]);
  assert.deepEqual(reached("https://h/hooks"), ["http", "http", "h:443"]);
  assert.deepEqual(reached("discard:"), ["discard", "discard", ""]);
  assert.deepEqual(reached("r:5673/?exchange=e", { PUBLISHER_TYPE: "rabbitmq" }), ["rabbitmq", "rabbitmq", "r:5673"]);
  assert.deepEqual(reached("n:1", { PUBLISHER_TYPE: "NATS" }), ["nats", "nats", "n:1"]);
});

test("G2 the scheme selects the kind of destination; an unknown one is reported with the known ones", () => {
  const { KAFKA_BROKERS: _, ...none } = BASE;
  const by = (address: string, more: Environment = {}) =>
    configFromEnvironment({ ...none, ...more, OUTBOX_DESTINATION: address }).destinations[0]!;
  assert.equal(by("stdout:").kind, "stdout");
  const kafka = by("kafka://h1:1,[::1]:2,h3");
  assert.equal(kafka.kind, "kafka");
  assert.deepEqual(kafka.addresses, ["h1:1", "[::1]:2", "h3:9092"]);
  const typed = by("h1:1", { PUBLISHER_TYPE: "kafka" });
  assert.deepEqual([typed.kind, typed.addresses], ["kafka", ["h1:1"]]);
  const unknown = problemsOf({ ...none, OUTBOX_DESTINATION: "pulsar://u:hunter2@h" });
  assert.match(unknown, /OUTBOX_DESTINATION starts with "pulsar:": write kafka:\/\/host:port, .*stdout:/);
  assert.doesNotMatch(unknown, /hunter2/);
  assert.match(problemsOf({ ...none, OUTBOX_DESTINATION: "kafka" }), /has no scheme/);
  assert.match(
    problemsOf({ ...none, OUTBOX_DESTINATION: "stdout:", DELIVERY: "exactly-once" }),
    /stdout does not support it/,
  );
  assert.match(problemsOf({ ...BASE, OUTBOX_DESTINATION: "kafka://other:1" }), /name different destinations/);
  assert.equal(problemsOf({ ...BASE, OUTBOX_DESTINATION: "kafka://k1:9092" }), "");
  assert.match(problemsOf({ ...BASE, KAFKA_BROKERS: "k1:99999,x y" }), /KAFKA_BROKERS.*"k1:99999", "x y"/);
});

test("A20 Kafka logins need all their settings", () => {
  const user = { KAFKA_USERNAME: "u", KAFKA_PASSWORD: "pass" };
  assert.deepEqual(kafkaOf({ ...user, KAFKA_SASL_MECHANISM: "scram-sha-256" }).sasl, {
    mechanism: "SCRAM-SHA-256",
    username: "u",
    password: "pass",
  });
  assert.equal(kafkaOf(user).sasl?.mechanism, "PLAIN");
  const warned = (env: Environment) =>
    configFromEnvironment({ ...BASE, PGSSLMODE: "require", ...user, ...env }).warnings.length;
  assert.deepEqual(
    [warned({}), warned({ KAFKA_SSL: "true" }), warned({ KAFKA_SASL_MECHANISM: "SCRAM-SHA-256" })],
    [1, 0, 0],
  );
  assert.equal(kafkaOf({}).sasl, undefined);
  assert.deepEqual(kafkaOf({ KAFKA_OAUTH_TOKEN: "t" }).sasl, { mechanism: "OAUTHBEARER", token: "t" });
  assert.match(problemsOf({ ...BASE, KAFKA_PASSWORD: "pass" }), /KAFKA_PASSWORD is set but KAFKA_USERNAME is not/);
  assert.match(problemsOf({ ...BASE, KAFKA_SASL_MECHANISM: "PLAIN" }), /needs KAFKA_USERNAME and KAFKA_PASSWORD/);
  assert.match(problemsOf({ ...BASE, KAFKA_USERNAME: "u" }), /KAFKA_PASSWORD is missing/);
  assert.match(problemsOf({ ...BASE, KAFKA_SASL_MECHANISM: "OAUTHBEARER" }), /needs KAFKA_OAUTH_TOKEN, or/);
  assert.match(problemsOf({ ...BASE, KAFKA_SASL_MECHANISM: "GSSAPI" }), /write PLAIN, SCRAM-SHA-256/);
});

test("A20 certificates switch TLS to Kafka on, and come in pairs", () => {
  const PEM = "-----BEGIN X-----\\nabc\\n-----END X-----";
  const pem = PEM.replaceAll("\\n", "\n");
  assert.equal(kafkaOf({}).tls, false);
  assert.equal(kafkaOf({ KAFKA_SSL: "yes" }).tls, true);
  assert.deepEqual(kafkaOf({ KAFKA_SSL_CA: PEM }).tls, { ca: pem });
  assert.deepEqual(kafkaOf({ KAFKA_SSL_CERT: PEM, KAFKA_SSL_KEY: PEM }).tls, { cert: pem, key: pem });
  assert.match(problemsOf({ ...BASE, KAFKA_SSL_CERT: PEM }), /KAFKA_SSL_CERT is set but KAFKA_SSL_KEY is not/);
  assert.match(
    problemsOf({ ...BASE, KAFKA_SSL: "false", KAFKA_SSL_CA: PEM }),
    /KAFKA_SSL is "false" but certificates are/,
  );
});

test("A20 tokens are requested by client credentials, shared while fresh and renewed in time", async () => {
  const requests: { authorization: string | undefined; body: string }[] = [];
  let answer = { status: 200, body: JSON.stringify({ access_token: "t1", expires_in: 3_600 }) };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      requests.push({ authorization: request.headers.authorization, body });
      response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
    const env = { KAFKA_OAUTH_TOKEN_URL: url, KAFKA_OAUTH_CLIENT_ID: "id", KAFKA_OAUTH_CLIENT_SECRET: "se:cret" };
    const tokenOf = (more: Environment = {}) => {
      const { sasl } = kafkaOf({ ...env, ...more });
      assert.ok(sasl?.mechanism === "OAUTHBEARER" && typeof sasl.token === "function");
      return sasl.token;
    };
    const token = tokenOf({ KAFKA_OAUTH_SCOPE: "kafka" });
    assert.deepEqual(await Promise.all([token(), token()]), ["t1", "t1"]);
    assert.equal(await token(), "t1");
    assert.equal(requests.length, 1);
    assert.equal(requests[0]?.authorization, `Basic ${Buffer.from("id:se%3Acret").toString("base64")}`);
    assert.equal(requests[0]?.body, "grant_type=client_credentials&scope=kafka");
    answer = { status: 401, body: "{}" };
    await assert.rejects(tokenOf()(), /Cannot get a token from .*: it answered 401 \[DESTINATION_UNREACHABLE\]/);
    answer = { status: 200, body: JSON.stringify({ access_token: "t2" }) };
    const shortLived = tokenOf();
    await shortLived();
    await shortLived();
    assert.equal(requests.length, 4, "one without a life is asked for each time");
  } finally {
    server.close();
  }
});

test("BATCH_SIZE is the number of events in one publish, also where that is a transaction", () => {
  const limitsOf = (own: Record<string, string>) => configFromEnvironment({ ...BASE, ...own }).destinations[0]?.limits;
  assert.deepEqual(limitsOf({}), {});
  assert.deepEqual(limitsOf({ BATCH_SIZE: "7" }), { batchSize: 7, transactionSize: 7 });
  assert.deepEqual(limitsOf({ BATCH_SIZE: "7", TRANSACTION_SIZE: "90" }), { batchSize: 7, transactionSize: 90 });
  assert.deepEqual(limitsOf({ TRANSACTION_SIZE: "90" }), { transactionSize: 90 });
});

test("the table's preset provides the defaults, and explicit settings override them", () => {
  const unset = configFromEnvironment(BASE).policy;
  const flag = policyOf("flag", unset);
  assert.deepEqual([flag.batchSize, flag.pollIntervalMs, flag.onExhausted, flag.idHeader], [500, 500, "park", null]);
  assert.equal(flag.retry, RETRY_PRESETS.flag);
  const open = policyOf("openoutbox", unset);
  assert.deepEqual([open.batchSize, open.onExhausted, open.idHeader], [100, "skip", "X-Event-ID"]);
  assert.equal(open.retry, RETRY_PRESETS.openoutbox);
  assert.deepEqual(
    [policyOf("worker", unset).pollIntervalMs, policyOf("intent", unset).retry.kind],
    [5_000, "schedule"],
  );
  const set = configFromEnvironment({ ...BASE, MAX_RETRIES: "3", ON_EXHAUSTED: "block" }).policy;
  const mine = policyOf("openoutbox", set);
  assert.equal(mine.onExhausted, "block");
  assert.deepEqual(mine.retry, { ...RETRY_PRESETS.openoutbox, attemptsMax: 3 });
  const longer = configFromEnvironment({ ...BASE, RETRY_INITIAL_DELAY_MS: "10m" }).policy;
  assert.ok(policyOf("flag", longer).retry.kind === "exponential");
  assert.match(
    problemsOf({ ...BASE, RETRY_INITIAL_DELAY_MS: "10s", RETRY_MAX_DELAY_MS: "1s" }),
    /RETRY_INITIAL_DELAY_MS \(10000 ms\) is above RETRY_MAX_DELAY_MS/,
  );
});

test("A16 templates for topic, key and headers are compiled at the start, or refused", () => {
  const templatesOf = (env: Environment) => configFromEnvironment({ ...BASE, ...env }).routes[0]!.templates;
  const templates = templatesOf({
    TOPIC_TEMPLATE: "outbox.{type}",
    KEY_TEMPLATE: "{header:tenant}",
    HEADERS_TEMPLATE: "x-from={schema}.{table},x-id={id}",
  });
  const event: OutboxEvent = {
    id: "1",
    type: "t",
    key: "k",
    payload: Buffer.alloc(0),
    headers: { tenant: "acme" },
    correlationId: null,
    createdAt: null,
  };
  const source = { schema: "s", table: "o" };
  assert.equal(templates.topic?.(event, source), "outbox.t");
  assert.equal(templates.key?.(event, source), "acme");
  assert.equal(templates.headers["x-from"]?.(event, source), "s.o");
  const json = templatesOf({ HEADERS_TEMPLATE: '{"a": "{type},{id}"}' });
  assert.equal(json.headers.a?.(event, source), "t,1");
  assert.match(problemsOf({ ...BASE, TOPIC_TEMPLATE: "{typ}" }), /^TOPIC_TEMPLATE: .*did you mean \{type\}/);
});

test("B5 the Open Outbox Relay's own variables are enough", () => {
  const config = configFromEnvironment({
    STORAGE_URL: "postgres://h/d",
    PUBLISHER_TYPE: "kafka",
    PUBLISHER_URL: "k:9092",
    POLL_INTERVAL: "250ms",
    LEASE_TIMEOUT: "3m",
    RETRY_BASE_DELAY: "2s",
    RETRY_MAX_DELAY: "24h",
    RETRY_JITTER: "0.2",
    SERVER_PORT: "9000",
  });
  assert.deepEqual(config.sources.tables, ["public.openoutbox_events"]);
  assert.equal(config.sources.claimLeaseMs, 180_000);
  assert.equal(config.timing.leaseMs, 10_000);
  assert.equal(config.http.port, 9_000);
  const { pollIntervalMs, retry } = policyOf("openoutbox", config.policy);
  assert.equal(pollIntervalMs, 250);
  assert.deepEqual(retry, { ...RETRY_PRESETS.openoutbox, initialMs: 2_000, jitter: 0.2 });
});

test("C8 traces are off with OTEL_TRACES_EXPORTER=none, and with an exporter that the relay lacks", () => {
  const endpoint = { ...BASE, OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" };
  const of = (exporter: string) => configFromEnvironment({ ...endpoint, OTEL_TRACES_EXPORTER: exporter });
  assert.notEqual(configFromEnvironment(endpoint).telemetry.tracing, null);
  assert.notEqual(of("console,otlp").telemetry.tracing, null);
  assert.equal(of("none").telemetry.tracing, null);
  assert.doesNotMatch(of("none").warnings.join(), /OTEL/);
  assert.equal(of("console").telemetry.tracing, null);
  assert.match(of("console").warnings.join(), /OTEL_TRACES_EXPORTER is "console", so traces are off/);
});

test("A6 custom columns are named by their role", () => {
  const { columns } = configFromEnvironment({ ...BASE, OUTBOX_COLUMNS: "id=No,flags=done+sent,key=none" }).sources;
  assert.deepEqual(columns, { id: "No", flags: ["done", "sent"], key: null });
  assert.match(problemsOf({ ...BASE, OUTBOX_COLUMNS: "ids=No" }), /unknown name "ids", did you mean id\?/);
});

test("names that PostgreSQL cannot accept are refused before any query", () => {
  assert.match(problemsOf({ ...BASE, DATABASE_SCHEMA: "s".repeat(64) }), /DATABASE_SCHEMA/);
  assert.match(
    problemsOf({ ...BASE, OUTBOX_SCHEMAS: "s".repeat(64) }),
    /OUTBOX_SCHEMAS: .* is not a valid PostgreSQL name/,
  );
  assert.match(problemsOf({ ...BASE, OUTBOX_TABLE: "a.b.c" }), /OUTBOX_TABLE: "a.b.c" is not a table name/);
  assert.match(problemsOf({ ...BASE, OUTBOX_SCHEMAS: "a,*" }), /OUTBOX_SCHEMAS has \* and other names/);
});

test("H1 B4 the lease of an instance and the lease of claims are two settings", () => {
  const leases = (variables: Record<string, string>) => {
    const { timing, sources } = configFromEnvironment({ ...BASE, ...variables });
    return [timing.leaseMs, sources.claimLeaseMs];
  };
  assert.deepEqual(leases({}), [10_000, null]);
  assert.deepEqual(leases({ LEASE_TIMEOUT: "3m" }), [10_000, 180_000]);
  assert.deepEqual(leases({ LEASE_TIMEOUT: "3s" }), [3_000, 3_000]);
  assert.deepEqual(leases({ LEASE_TIMEOUT: "3s", INSTANCE_LEASE: "20s" }), [20_000, 3_000]);
  assert.deepEqual(leases({ LEASE_TIMEOUT: "3m", INSTANCE_LEASE: "30s" }), [30_000, 180_000]);
  // A long lease for slow receivers still leaves as much time as they need.
  assert.deepEqual(leases({ LEASE_TIMEOUT: "1m", PUBLISH_TIMEOUT: "20s" }), [40_000, 60_000]);
  const tooLong = { ...BASE, INSTANCE_LEASE: "5s", PUBLISH_TIMEOUT: "6s" };
  assert.match(problemsOf(tooLong), /PUBLISH_TIMEOUT \(6s\) must be below INSTANCE_LEASE \(5s\)/);
});

test("timings that must stay below the lease shrink with it, and a stop fits into its time", () => {
  const { timing, database } = configFromEnvironment({ ...BASE, LEASE_TIMEOUT: "2s", SHUTDOWN_TIMEOUT_MS: "1000" });
  assert.ok(timing.leaseMarginMs! < 2_000 && timing.publishTimeoutMs! < 2_000);
  assert.ok(database.timeouts!.statementMs! < 1_000, "below half the lease");
  assert.ok(timing.shutdownMs! * 1.5 < 1_000);
  assert.ok(kafkaOf({ LEASE_TIMEOUT: "2s" }).requestTimeoutMs! < timing.publishTimeoutMs!);
  assert.deepEqual([kafkaOf({}).requestTimeoutMs, kafkaOf({}).connectTimeoutMs], [4_000, 3_000]);
});

test("F3 A14 recording takes a number per second, all or off, and redaction a list of names", () => {
  const recordOf = (env: Readonly<Record<string, string>>) => configFromEnvironment({ ...BASE, ...env }).record;
  const defaults = { deliveredPerSecond: 50, retentionMs: 604_800_000, redact: [] };
  assert.deepEqual(recordOf({}), defaults);
  assert.equal(recordOf({ RECORD_DELIVERED: "ALL" }).deliveredPerSecond, Number.POSITIVE_INFINITY);
  for (const none of ["off", "0"]) assert.equal(recordOf({ RECORD_DELIVERED: none }).deliveredPerSecond, 0);
  assert.deepEqual(recordOf({ REDACT: "password, card.*" }).redact, ["password", "card.*"]);
  assert.throws(() => recordOf({ RECORD_DELIVERED: "some" }), /RECORD_DELIVERED is "some": write all, off, or a whole/);
});
