import { TARGET_SESSIONS } from "../../postgres/hosts.ts";
import { DEFAULT_RELAY_SCHEMA } from "../../postgres/relay-tables.ts";
import { postgresAddress } from "../reading/dotnet-connection.ts";
import { listenPort } from "../reading/open-outbox-variables.ts";
import { setting } from "./setting.ts";
import { decimal, duration, flag, matching, oneOf, pairs, ports, text, wholeNumber } from "./value-types.ts";

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** The characters that brokers allow in topic names and ids. */
const NAME = matching(/^[a-zA-Z0-9._-]{1,100}$/, 'letters, digits, ".", "_" and "-" only, at most 100 of them');

/** Settings of the database. */
export const databaseSettings = {
  DATABASE_URL: setting(
    "database.url",
    text().optional(),
    "Database with the outbox tables: postgres://user:password@host:5432/database. With several hosts (one:5432,two:5432) the relay uses the first that accepts writes; target_session_attrs=any uses the first that answers",
    {
      aliases: ["STORAGE_URL", { name: "ConnectionStrings__EventStore", convert: postgresAddress }],
      secret: "address",
    },
  ),
  PGHOST: setting(
    "database.host",
    text().optional(),
    "Database host, or several separated by commas; alternative to DATABASE_URL",
  ),
  PGPORT: setting(
    "database.port",
    ports().optional(),
    "Database port; with several hosts one for all of them, or one for each, separated by commas",
  ),
  PGTARGETSESSIONATTRS: setting(
    "database.targetSession",
    oneOf(TARGET_SESSIONS).optional(),
    "Which of several hosts the relay uses: read-write or primary the first that accepts writes (the default), any the first that answers",
  ),
  PGDATABASE: setting("database.name", text().optional(), "Database name"),
  PGUSER: setting("database.user", text().optional(), "Database role of the relay"),
  PGPASSWORD: setting("database.password", text().optional(), "Password of PGUSER", { secret: true }),
  PGSSLMODE: setting(
    "database.sslMode",
    oneOf(["disable", "require", "verify-ca", "verify-full", "no-verify"]).optional(),
    "TLS to the database: require encrypts; verify-ca and verify-full also verify the server",
  ),
  PGSSLROOTCERT: setting(
    "database.sslRootCert",
    text().optional(),
    "File with the CA certificates to trust, for verify-ca and verify-full",
  ),
  DATABASE_SCHEMA: setting("database.schema", text(63).default(DEFAULT_RELAY_SCHEMA), "Name of the relay's own schema"),
};

/** Settings of the process. */
export const processSettings = {
  SERVICE_NAME: setting(
    "service.name",
    NAME.default("outbox-relay"),
    "Service name in logs, health, client ids and the ledger topic",
  ),
  RELAY_ID: setting(
    "service.instance",
    text(100).optional(),
    "Name of this process in the list of instances and in locked_by of an Open Outbox table; default: host name and process id",
  ),
  SHUTDOWN_TIMEOUT_MS: setting(
    "service.shutdownTimeout",
    duration({ minMs: 500, maxMs: HOUR }).default(10 * SECOND),
    "Time for a shutdown to finish events in flight",
    { aliases: ["SHUTDOWN_TIMEOUT"] },
  ),
  HOST: setting("http.host", text(253).default("127.0.0.1"), "Address to listen on"),
  PORT: setting("http.port", wholeNumber(1, 65_535).default(3012), "Port of the console, API, health and metrics", {
    aliases: [{ name: "SERVER_PORT", convert: listenPort }],
  }),
};

/** Settings of telemetry. */
export const telemetrySettings = {
  NOTIFY_WEBHOOK_URL: setting(
    "notify.url",
    text().optional(),
    "Webhook that receives a POST when health gets worse or new dead letters appear: https://hooks.example/relay",
    { secret: "address" },
  ),
  NOTIFY_WEBHOOK_TOKEN: setting("notify.token", text().optional(), "Bearer token for NOTIFY_WEBHOOK_URL", {
    secret: true,
  }),
  NOTIFY_INTERVAL: setting(
    "notify.interval",
    duration({ minMs: 10 * SECOND, maxMs: 24 * HOUR }).default(5 * 60 * SECOND),
    "Minimum time between two notifications; the next one reports what happened meanwhile",
  ),
  TRACE_URL: setting(
    "console.traceUrl",
    text().optional(),
    "Link to a trace, for the console: https://tempo.example/trace/{traceId}; {correlationId} works too",
  ),
  LOG_LEVEL: setting(
    "log.level",
    oneOf(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
    "Minimum level to log",
  ),
  LOG_EVENTS: setting(
    "log.events",
    oneOf(["failures", "all"]).default("failures"),
    "failures: one line per failed attempt, deliveries as sums; all: also one line per delivered event",
  ),
  LOKI_HOST: setting("log.loki.url", text().optional(), "Loki server to push log lines to: http://loki:3100", {
    secret: "address",
  }),
  LOKI_BASIC_AUTH: setting("log.loki.basicAuth", text().optional(), "user:password for LOKI_HOST", { secret: true }),
  LOKI_ENABLED: setting(
    "log.loki.enabled",
    flag().optional(),
    "false turns the push to LOKI_HOST off; default: on if LOKI_HOST is set",
  ),
  LOKI_LEVEL: setting(
    "log.loki.level",
    oneOf(["trace", "debug", "info", "warn", "error", "fatal"]).optional(),
    "Minimum level to push; default: LOG_LEVEL",
  ),
  METRICS_PORT: setting(
    "metrics.port",
    wholeNumber(1, 65_535).optional(),
    "Separate port for /metrics, in addition to PORT",
  ),
  ALLOY_PUSH_URL: setting("metrics.pushUrl", text().optional(), "Prometheus remote write endpoint to push metrics to", {
    secret: "address",
  }),
  METRICS_PUSH_INTERVAL: setting(
    "metrics.pushInterval",
    duration({ minMs: SECOND, maxMs: HOUR }).default(15 * SECOND),
    "Interval of metrics pushes",
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(
    "tracing.endpoint",
    text().optional(),
    "OTLP/HTTP endpoint for traces: http://collector:4318; without it, tracing is off",
    { secret: "address" },
  ),
  OTEL_TRACES_EXPORTER: setting(
    "tracing.exporter",
    text(100).default("otlp"),
    "otlp sends traces to OTEL_EXPORTER_OTLP_ENDPOINT; none turns them off",
  ),
  OTEL_EXPORTER_OTLP_HEADERS: setting(
    "tracing.headers",
    pairs().optional(),
    "Headers for OTEL_EXPORTER_OTLP_ENDPOINT, such as api-key=...",
    { secret: true },
  ),
  OTEL_TRACES_SAMPLER_ARG: setting(
    "tracing.ratio",
    decimal(0, 1).default(0.01),
    "Share of events to trace, for events without a sampling decision of their own",
  ),
};
