import { DEFAULT_RELAY_SCHEMA } from "../postgres/relay-tables.ts";
import { postgresAddress } from "./dotnet-connection.ts";
import { setting } from "./setting.ts";
import { decimal, duration, flag, matching, oneOf, pairs, text, wholeNumber } from "./value-types.ts";

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** Words that the brokers put into topic names and ids. */
const NAME = matching(/^[a-zA-Z0-9._-]{1,100}$/, 'letters, digits, ".", "_" and "-" only, at most 100 of them');

export const databaseSettings = {
  DATABASE_URL: setting(
    "database.url",
    text().optional(),
    "Where the outbox tables are: postgres://user:password@host:5432/database; of several hosts (one:5432,two:5432) the first that takes writes is used, target_session_attrs=any takes the first that answers",
    {
      aliases: ["STORAGE_URL", { name: "ConnectionStrings__EventStore", convert: postgresAddress }],
      secret: "address",
    },
  ),
  PGHOST: setting(
    "database.host",
    text().optional(),
    "The server, or several with commas between them, where DATABASE_URL does not say it",
  ),
  PGPORT: setting("database.port", wholeNumber(1, 65_535).optional(), "Its port"),
  PGDATABASE: setting("database.name", text().optional(), "The database's name"),
  PGUSER: setting("database.user", text().optional(), "The relay's role"),
  PGPASSWORD: setting("database.password", text().optional(), "Its password", { secret: true }),
  PGSSLMODE: setting(
    "database.sslMode",
    oneOf(["disable", "require", "verify-ca", "verify-full", "no-verify"]).optional(),
    "TLS to the database: require encrypts, verify-ca and verify-full also check who answers",
  ),
  PGSSLROOTCERT: setting(
    "database.sslRootCert",
    text().optional(),
    "File with the certificates to trust, for verify-ca and verify-full",
  ),
  DATABASE_SCHEMA: setting("database.schema", text(63).default(DEFAULT_RELAY_SCHEMA), "The relay's own schema"),
};

export const processSettings = {
  SERVICE_NAME: setting(
    "service.name",
    NAME.default("outbox-relay"),
    "The service's name in logs, health, client ids and the ledger topic",
  ),
  RELAY_ID: setting(
    "service.instance",
    text(100).optional(),
    "This process in the list of instances; host and process id by default",
  ),
  SHUTDOWN_TIMEOUT_MS: setting(
    "service.shutdownTimeout",
    duration({ minMs: 500, maxMs: HOUR }).default(10 * SECOND),
    "How long a stop may take to finish what is in flight",
    { aliases: ["SHUTDOWN_TIMEOUT"] },
  ),
  HOST: setting("http.host", text(253).default("127.0.0.1"), "The address to listen on"),
  PORT: setting("http.port", wholeNumber(1, 65_535).default(3012), "The port of health, probes and metrics", {
    aliases: ["SERVER_PORT"],
  }),
};

export const telemetrySettings = {
  LOG_LEVEL: setting(
    "log.level",
    oneOf(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
    "The least level that is logged",
  ),
  LOG_EVENTS: setting(
    "log.events",
    oneOf(["failures", "all"]).default("failures"),
    "failures: failed attempts one by one, deliveries summed up; all: every delivered event too",
  ),
  LOKI_HOST: setting("log.loki.url", text().optional(), "Where log lines are pushed to as well: http://loki:3100", {
    secret: "address",
  }),
  LOKI_BASIC_AUTH: setting("log.loki.basicAuth", text().optional(), "user:password for LOKI_HOST", { secret: true }),
  LOKI_ENABLED: setting(
    "log.loki.enabled",
    flag().optional(),
    "false keeps the lines from LOKI_HOST; on when that is set",
  ),
  LOKI_LEVEL: setting(
    "log.loki.level",
    oneOf(["trace", "debug", "info", "warn", "error", "fatal"]).optional(),
    "The least level that is pushed; LOG_LEVEL by default",
  ),
  METRICS_PORT: setting(
    "metrics.port",
    wholeNumber(1, 65_535).optional(),
    "A port of its own for /metrics, beside PORT",
  ),
  ALLOY_PUSH_URL: setting(
    "metrics.pushUrl",
    text().optional(),
    "Where metrics are pushed to by Prometheus remote write",
    { secret: "address" },
  ),
  METRICS_PUSH_INTERVAL: setting(
    "metrics.pushInterval",
    duration({ minMs: SECOND, maxMs: HOUR }).default(15 * SECOND),
    "The time between two pushes of the metrics",
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(
    "tracing.endpoint",
    text().optional(),
    "Where traces go, by OTLP over HTTP: http://collector:4318; none are made without it",
    { secret: "address" },
  ),
  OTEL_EXPORTER_OTLP_HEADERS: setting(
    "tracing.headers",
    pairs().optional(),
    "Headers of those requests, such as api-key=...",
    { secret: true },
  ),
  OTEL_TRACES_SAMPLER_ARG: setting(
    "tracing.ratio",
    decimal(0, 1).default(0.01),
    "The share of events that is traced where the event itself does not say it",
  ),
};
