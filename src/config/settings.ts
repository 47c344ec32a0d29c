import { z } from "zod";
import { DEFAULT_RELAY_SCHEMA } from "../postgres/relay-tables.ts";
import { decimal, duration, flag, list, matching, oneOf, pairs, pem, text, wholeNumber } from "./value-types.ts";

/** What is known of a setting besides its type. */
interface SettingMeta {
  readonly description: string;
  /** Other names of the same setting, with the same meaning of a bare number. */
  readonly aliases?: readonly string[];
  /**
   * Never shown, or of an address its password; can also come from a file, named by the variable with `_FILE` behind
   * its name.
   */
  readonly secret?: true | "address";
}

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

function setting<Type extends z.ZodType>(type: Type, description: string, meta: Omit<SettingMeta, "description"> = {}) {
  return type.meta({ description, ...meta } satisfies SettingMeta);
}

/** Words that the brokers put into topic names and ids. */
const NAME = matching(/^[a-zA-Z0-9._-]{1,100}$/, 'letters, digits, ".", "_" and "-" only, at most 100 of them');

const database = {
  DATABASE_URL: setting(text().optional(), "Where the outbox tables are: postgres://user:password@host:5432/database", {
    aliases: ["STORAGE_URL"],
    secret: "address",
  }),
  PGHOST: setting(text().optional(), "The server, where DATABASE_URL does not say it"),
  PGPORT: setting(wholeNumber(1, 65_535).optional(), "Its port"),
  PGDATABASE: setting(text().optional(), "The database's name"),
  PGUSER: setting(text().optional(), "The relay's role"),
  PGPASSWORD: setting(text().optional(), "Its password", { secret: true }),
  PGSSLMODE: setting(
    oneOf(["disable", "require", "verify-ca", "verify-full", "no-verify"]).optional(),
    "TLS to the database: require encrypts, verify-ca and verify-full also check who answers",
  ),
  PGSSLROOTCERT: setting(text().optional(), "File with the certificates to trust, for verify-ca and verify-full"),
  DATABASE_SCHEMA: setting(text(63).default(DEFAULT_RELAY_SCHEMA), "The relay's own schema"),
};

const process = {
  SERVICE_NAME: setting(
    NAME.default("outbox-relay"),
    "The service's name in logs, health, client ids and the ledger topic",
  ),
  RELAY_ID: setting(text(100).optional(), "This process in the list of instances; host and process id by default"),
  LOG_LEVEL: setting(
    oneOf(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
    "The least level that is logged",
  ),
  LOG_EVENTS: setting(
    oneOf(["failures", "all"]).default("failures"),
    "failures: failed attempts one by one, deliveries summed up; all: every delivered event too",
  ),
  HOST: setting(text(253).default("127.0.0.1"), "The address to listen on"),
  PORT: setting(wholeNumber(1, 65_535).default(3012), "The port of health, probes and metrics", {
    aliases: ["SERVER_PORT"],
  }),
  ADMIN_TOKEN: setting(
    text().optional(),
    "Who sends it as a bearer token may use the API and the console; needed as soon as HOST is not this machine alone",
    { secret: true },
  ),
  SHUTDOWN_TIMEOUT_MS: setting(
    duration({ minMs: 500, maxMs: HOUR }).default(10 * SECOND),
    "How long a stop may take to finish what is in flight",
    { aliases: ["SHUTDOWN_TIMEOUT"] },
  ),
};

const telemetry = {
  METRICS_PORT: setting(wholeNumber(1, 65_535).optional(), "A port of its own for /metrics, beside PORT"),
  ALLOY_PUSH_URL: setting(text().optional(), "Where metrics are pushed to by Prometheus remote write", {
    secret: "address",
  }),
  METRICS_PUSH_INTERVAL: setting(
    duration({ minMs: SECOND, maxMs: HOUR }).default(15 * SECOND),
    "The time between two pushes of the metrics",
  ),
  LOKI_HOST: setting(text().optional(), "Where log lines are pushed to as well: http://loki:3100", {
    secret: "address",
  }),
  LOKI_BASIC_AUTH: setting(text().optional(), "user:password for LOKI_HOST", { secret: true }),
  LOKI_ENABLED: setting(flag().optional(), "false keeps the lines from LOKI_HOST; on when that is set"),
  LOKI_LEVEL: setting(
    oneOf(["trace", "debug", "info", "warn", "error", "fatal"]).optional(),
    "The least level that is pushed; LOG_LEVEL by default",
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(
    text().optional(),
    "Where traces go, by OTLP over HTTP: http://collector:4318; none are made without it",
    { secret: "address" },
  ),
  OTEL_EXPORTER_OTLP_HEADERS: setting(pairs().optional(), "Headers of those requests, such as api-key=...", {
    secret: true,
  }),
  OTEL_TRACES_SAMPLER_ARG: setting(
    decimal(0, 1).default(0.01),
    "The share of events that is traced where the event itself does not say it",
  ),
};

const sources = {
  OUTBOX_SCHEMAS: setting(
    list().optional(),
    "Schemas whose outbox tables are read, or * for every schema that has one",
  ),
  OUTBOX_TABLE: setting(text(200).optional(), "One table of events, as schema.table"),
  OUTBOX_COLUMNS: setting(
    pairs().optional(),
    "Columns under names of their own: id=No,type=kind,flags=done+sent (id, type, key, payload, headers, correlationId, createdAt, order, flags, status, nextAttemptAt, attempts, lastError)",
  ),
  POLL_INTERVAL_MS: setting(
    duration({ minMs: 1, maxMs: HOUR }).optional(),
    "The longest pause between two looks at an idle table; 500 ms by default, 5 s for a worker's table",
    { aliases: ["POLL_INTERVAL"] },
  ),
  RETENTION: setting(
    duration({ minMs: SECOND, maxMs: 3_650 * DAY }).optional(),
    "Delivered rows older than this are deleted; they stay by default",
    { aliases: ["RETENTION_MS"] },
  ),
  LANES: setting(wholeNumber(1, 1_024).default(4), "Lanes of a new pipeline; later the database knows the number"),
  LEASE_TIMEOUT: setting(
    duration({ minMs: 2 * SECOND, maxMs: HOUR }).optional(),
    "A silent instance is taken for dead after this time; 10 s by default, 3 m for the claims in an Open Outbox table",
    { aliases: ["LEASE_TIMEOUT_MS"] },
  ),
};

const destination = {
  KAFKA_BROKERS: setting(list().optional(), "Some brokers of the cluster, as host:port,host:port"),
  OUTBOX_DESTINATION: setting(text().optional(), "Where the events go: kafka://host:port,host:port or stdout:", {
    aliases: ["PUBLISHER_URL"],
    secret: "address",
  }),
  PUBLISHER_TYPE: setting(text(50).optional(), "The scheme of PUBLISHER_URL, where that has none"),
  DELIVERY: setting(
    oneOf(["exactly-once", "at-least-once"]).optional(),
    "The strongest that the destination offers by default",
  ),
  BATCH_SIZE: setting(
    wholeNumber(1, 100_000).optional(),
    "Events in one publish; 500 by default, 100 for an Open Outbox table",
  ),
  TRANSACTION_SIZE: setting(
    wholeNumber(1, 100_000).optional(),
    "Events in one transaction of an exactly-once destination; 5,000 by default",
  ),
  TOPICS_CREATE: setting(
    flag().optional(),
    "true creates unknown topics, false never does; by default the broker decides",
  ),
  TOPIC_TEMPLATE: setting(text().optional(), "The topic, such as outbox.{type}; the event's type by default"),
  KEY_TEMPLATE: setting(text().optional(), "The message's key, such as {header:tenant}; the event's key by default"),
  HEADERS_TEMPLATE: setting(pairs().optional(), "More headers, such as x-source={schema}.{table},x-tenant={key}"),
};

const kafka = {
  KAFKA_SASL_MECHANISM: setting(
    oneOf(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]).optional(),
    "How to log in; PLAIN when there is a user",
  ),
  KAFKA_USERNAME: setting(text().optional(), "The user of PLAIN and SCRAM"),
  KAFKA_PASSWORD: setting(text().optional(), "Its password", { secret: true }),
  KAFKA_OAUTH_TOKEN: setting(text(100_000).optional(), "A token for OAUTHBEARER", { secret: true }),
  KAFKA_OAUTH_TOKEN_URL: setting(text().optional(), "Where to ask for tokens, with client credentials"),
  KAFKA_OAUTH_CLIENT_ID: setting(text().optional(), "The client's id there"),
  KAFKA_OAUTH_CLIENT_SECRET: setting(text().optional(), "Its secret", { secret: true }),
  KAFKA_OAUTH_SCOPE: setting(text().optional(), "The scope to ask for"),
  KAFKA_SSL: setting(flag().optional(), "TLS to the brokers; on when one of the certificates is given"),
  KAFKA_SSL_CA: setting(pem().optional(), "The certificates to trust, in PEM", { secret: true }),
  KAFKA_SSL_CERT: setting(pem().optional(), "The relay's own certificate, in PEM", { secret: true }),
  KAFKA_SSL_KEY: setting(pem().optional(), "Its key, in PEM", { secret: true }),
  KAFKA_SSL_KEY_PASSPHRASE: setting(text().optional(), "The key's passphrase", { secret: true }),
  KAFKA_COMPRESSION: setting(oneOf(["none", "gzip", "lz4", "zstd", "snappy"]).optional(), "none by default"),
  KAFKA_LEDGER_TOPIC: setting(
    matching(/^[a-zA-Z0-9._-]{1,249}$/, 'a topic\'s name: letters, digits, ".", "_" and "-"').optional(),
    "The topic of the exactly-once ledger; outbox-relay.ledger.SERVICE_NAME by default",
  ),
};

const failures = {
  MAX_RETRIES: setting(
    wholeNumber(1, 1_000).optional(),
    "The failure with this number is the last; 10 by default, 25 for an Open Outbox table",
    { aliases: ["RETRY_MAX_ATTEMPTS"] },
  ),
  RETRY_INITIAL_DELAY_MS: setting(
    duration({ minMs: 0, maxMs: DAY }).optional(),
    "The pause after the first failure; it doubles with each further one",
    { aliases: ["RETRY_BASE_DELAY"] },
  ),
  RETRY_MAX_DELAY_MS: setting(
    duration({ minMs: 0, maxMs: 365 * DAY }).optional(),
    "The longest pause; 5 m by default, 24 h for an Open Outbox table",
    { aliases: ["RETRY_MAX_DELAY"] },
  ),
  RETRY_JITTER: setting(decimal(0, 1).optional(), "The share of a pause that is drawn at random"),
  ON_EXHAUSTED: setting(
    oneOf(["park", "block", "skip"]).optional(),
    "What becomes of a key whose head is dead: park it, try for ever, or skip the head",
  ),
};

/** Every setting of the service by its name in the environment. Help, reference and checks are made from it. */
export const settingsSchema = z.object({
  ...database,
  ...process,
  ...telemetry,
  ...sources,
  ...destination,
  ...kafka,
  ...failures,
});

export type Settings = z.output<typeof settingsSchema>;
export type SettingName = keyof Settings;

export function metaOf(name: SettingName): SettingMeta {
  return settingsSchema.shape[name].meta() as unknown as SettingMeta;
}

export const SETTING_NAMES = Object.keys(settingsSchema.shape) as SettingName[];
