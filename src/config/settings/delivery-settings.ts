import { storageTable } from "../reading/open-outbox-variables.ts";
import { ENVELOPES, writtenDestinations, writtenRoutes } from "../reading/written-routes.ts";
import { inSeconds, retriesAfterFirst, setting } from "./setting.ts";
import {
  decimal,
  duration,
  flag,
  list,
  matching,
  oneOf,
  pairs,
  pem,
  structure,
  text,
  wholeNumber,
} from "./value-types.ts";

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

/** Settings of sources and of the relay. */
export const sourceSettings = {
  OUTBOX_SCHEMAS: setting(
    "sources.schemas",
    list().optional(),
    "Schemas whose outbox tables are read, or * for every schema that has one",
  ),
  OUTBOX_TABLE: setting("sources.table", text(200).optional(), "One outbox table, as schema.table", {
    aliases: [{ name: "STORAGE_TABLE_NAME", convert: storageTable }],
  }),
  OUTBOX_STORE: setting(
    "sources.store",
    text().optional(),
    "Redis outbox to read instead of a database: redis://host:port/0?name=OUTBOX",
    { secret: "address" },
  ),
  OUTBOX_ONLY: setting(
    "sources.only",
    list().optional(),
    "Deliver only these event types, in a pipeline of their own; * matches anything. Other relays must deliver the rest, and must not match these types",
  ),
  OUTBOX_INTENTS: setting(
    "intents.folder",
    text().optional(),
    "Folder of the intent relays, one file <intent>-relay.ts each; default: the folder relays beside the config file or in the working directory, if it contains any",
  ),
  OUTBOX_COLUMNS: setting(
    "sources.columns",
    pairs().optional(),
    "Column names that differ from the usual ones: id=No,type=kind,flags=done+sent (id, type, key, payload, headers, correlationId, causationId, contentType, createdAt, order, flags, status, nextAttemptAt, attempts, lastError; for logs position and xid)",
  ),
  POLL_INTERVAL_MS: setting(
    "sources.pollInterval",
    duration({ minMs: 1, maxMs: HOUR }).optional(),
    "Longest time between two polls of an idle table; default: 500 ms, 5 s for a worker table",
    { aliases: ["POLL_INTERVAL", inSeconds("OutboxDispatcher__PollingIntervalSeconds")] },
  ),
  RETENTION: setting(
    "sources.retention",
    duration({ minMs: SECOND, maxMs: 3_650 * DAY }).optional(),
    "Delete delivered rows older than this; default: keep them",
    { aliases: ["RETENTION_MS"] },
  ),
  LANES: setting(
    "relay.lanes",
    wholeNumber(1, 1_024).default(4),
    "Number of lanes of a new pipeline; an existing one keeps the number stored in the database",
  ),
  LEASE_TIMEOUT: setting(
    "relay.leaseTimeout",
    duration({ minMs: 2 * SECOND, maxMs: HOUR }).optional(),
    "Lease of claims in an Open Outbox table, after which another relay takes them over; default: 3 m. Below 10 s it is also the default of INSTANCE_LEASE",
    { aliases: ["LEASE_TIMEOUT_MS"] },
  ),
  INSTANCE_LEASE: setting(
    "relay.instanceLease",
    duration({ minMs: 2 * SECOND, maxMs: HOUR }).optional(),
    "An instance without a heartbeat for this time counts as dead, and others take over its lanes; default: 10 s, or LEASE_TIMEOUT if that is less, raised up to LEASE_TIMEOUT if PUBLISH_TIMEOUT needs more",
    { aliases: ["INSTANCE_LEASE_MS"] },
  ),
  REAP_BATCH_SIZE: setting(
    "relay.reapBatchSize",
    wholeNumber(1, 100_000).optional(),
    "Claims of dead relays in an Open Outbox table to free per step; default: 1,000",
  ),
  PUBLISH_TIMEOUT: setting(
    "relay.publishTimeout",
    duration({ minMs: 100, maxMs: HOUR }).optional(),
    "Timeout of a publish without an answer; default: half of the lease, at most 5 s",
    { aliases: ["PUBLISH_TIMEOUT_MS"] },
  ),
};

/** Settings of destinations, routes and messages. */
export const destinationSettings = {
  OUTBOX_DESTINATION: setting(
    "destination.url",
    text().optional(),
    "Destination of the events: kafka://, amqp://, nats://, redis://, bullmq+redis://, sqs://, https://, stdout: or discard:",
    { aliases: ["PUBLISHER_URL"], secret: "address" },
  ),
  PUBLISHER_TYPE: setting(
    "destination.type",
    text(50).optional(),
    "Kind of the destination, such as kafka or nats, for a URL without a scheme; stdout and null need no URL, and disregard one",
  ),
  DELIVERY: setting(
    "destination.delivery",
    oneOf(["exactly-once", "at-least-once"]).optional(),
    "Delivery guarantee; default: the strongest that the destination offers",
  ),
  BATCH_SIZE: setting(
    "destination.batchSize",
    wholeNumber(1, 100_000).optional(),
    "Events per publish; default: 500, 100 for an Open Outbox, worker or intent table, 1,000 for a log. Also limits the transactions of an exactly-once destination, unless TRANSACTION_SIZE is set",
    { aliases: ["OutboxDispatcher__BatchSize"] },
  ),
  TRANSACTION_SIZE: setting(
    "destination.transactionSize",
    wholeNumber(1, 100_000).optional(),
    "Events per transaction of an exactly-once destination; default: BATCH_SIZE if that is set, otherwise 5,000",
  ),
  RATE_LIMIT: setting(
    "destination.rateLimit",
    wholeNumber(1, 1_000_000).optional(),
    "Rate limit of the destination in events per second; default: none",
  ),
  OUTBOX_DESTINATIONS: setting(
    "destinations",
    structure(writtenDestinations, "{orders: {url: 'kafka://host:9092'}}").optional(),
    "Several named destinations, each with the keys of destination: {orders: {url: ...}, audit: {url: ...}}",
    { secret: "parts" },
  ),
  OUTBOX_ROUTES: setting(
    "routes",
    structure(writtenRoutes, "[{types: [order.placed], destination: orders}]").optional(),
    "Which events go to which destination, and how; the first matching route wins",
  ),
  TOPICS_CREATE: setting(
    "topics.create",
    flag().optional(),
    "true creates missing topics, false never does; default: the broker decides",
  ),
  TOPIC_TEMPLATE: setting(
    "messages.topic",
    text().optional(),
    "Template of the topic, such as outbox.{type}; default: the event's type",
  ),
  KEY_TEMPLATE: setting(
    "messages.key",
    text().optional(),
    "Template of the message key, such as {header:tenant}; default: the event's key",
  ),
  HEADERS_TEMPLATE: setting(
    "messages.headers",
    pairs().optional(),
    "Additional headers, such as x-source={schema}.{table},x-tenant={key}",
  ),
  ENVELOPE: setting(
    "messages.envelope",
    oneOf(ENVELOPES).optional(),
    "raw sends the payload as is; the others send CloudEvents 1.0 with the attributes in headers (binary) or as one JSON document (structured)",
  ),
  CLOUDEVENTS_SOURCE: setting(
    "messages.source",
    text(500).optional(),
    "Template of the CloudEvents source; default: /SERVICE_NAME/{schema}/{table}",
  ),
  CONTENT_TYPE: setting(
    "messages.contentType",
    text(200).optional(),
    "Content type of payloads without a content-type header; default in CloudEvents: application/json",
  ),
};

/** Settings of Kafka destinations. */
export const kafkaSettings = {
  KAFKA_BROKERS: setting(
    "destination.kafka.brokers",
    list().optional(),
    "Bootstrap brokers of the Kafka cluster, as host:port,host:port",
  ),
  KAFKA_SASL_MECHANISM: setting(
    "destination.kafka.sasl.mechanism",
    oneOf(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]).optional(),
    "SASL mechanism; default: PLAIN if a user is set",
  ),
  KAFKA_USERNAME: setting("destination.kafka.sasl.username", text().optional(), "User for PLAIN and SCRAM"),
  KAFKA_PASSWORD: setting("destination.kafka.sasl.password", text().optional(), "Password of KAFKA_USERNAME", {
    secret: true,
  }),
  KAFKA_OAUTH_TOKEN: setting("destination.kafka.sasl.token", text(100_000).optional(), "Fixed token for OAUTHBEARER", {
    secret: true,
  }),
  KAFKA_OAUTH_TOKEN_URL: setting(
    "destination.kafka.sasl.tokenUrl",
    text().optional(),
    "Token endpoint for OAUTHBEARER with client credentials",
    { secret: "address" },
  ),
  KAFKA_OAUTH_CLIENT_ID: setting(
    "destination.kafka.sasl.clientId",
    text().optional(),
    "Client id for KAFKA_OAUTH_TOKEN_URL",
  ),
  KAFKA_OAUTH_CLIENT_SECRET: setting(
    "destination.kafka.sasl.clientSecret",
    text().optional(),
    "Client secret for KAFKA_OAUTH_TOKEN_URL",
    {
      secret: true,
    },
  ),
  KAFKA_OAUTH_SCOPE: setting("destination.kafka.sasl.scope", text().optional(), "Scope to request"),
  KAFKA_SSL: setting(
    "destination.kafka.tls.enabled",
    flag().optional(),
    "TLS to the brokers; default: on if a certificate is set",
  ),
  KAFKA_SSL_CA: setting("destination.kafka.tls.ca", pem().optional(), "CA certificates to trust, in PEM", {
    secret: true,
  }),
  KAFKA_SSL_CERT: setting("destination.kafka.tls.cert", pem().optional(), "Client certificate, in PEM", {
    secret: true,
  }),
  KAFKA_SSL_KEY: setting("destination.kafka.tls.key", pem().optional(), "Key of the client certificate, in PEM", {
    secret: true,
  }),
  KAFKA_SSL_KEY_PASSPHRASE: setting("destination.kafka.tls.passphrase", text().optional(), "Passphrase of the key", {
    secret: true,
  }),
  KAFKA_COMPRESSION: setting(
    "destination.kafka.compression",
    oneOf(["none", "gzip", "lz4", "zstd", "snappy"]).optional(),
    "Compression codec; default: none",
  ),
  KAFKA_LEDGER_TOPIC: setting(
    "destination.kafka.ledgerTopic",
    matching(/^[a-zA-Z0-9._-]{1,249}$/, 'a topic\'s name: letters, digits, ".", "_" and "-"').optional(),
    "Topic of the exactly-once ledger; default: outbox-relay.ledger.SERVICE_NAME",
  ),
};

/** Settings of retries and dead letters. */
export const failureSettings = {
  MAX_RETRIES: setting(
    "retry.maxAttempts",
    wholeNumber(1, 1_000).optional(),
    "Attempts per event before it becomes a dead letter; default: 10, 25 for an Open Outbox table",
    { aliases: ["RETRY_MAX_ATTEMPTS", retriesAfterFirst("OutboxDispatcher__MaxRetryAttempts")] },
  ),
  RETRY_INITIAL_DELAY_MS: setting(
    "retry.initialDelay",
    duration({ minMs: 0, maxMs: DAY }).optional(),
    "Delay after the first failure; doubles with each further one",
    { aliases: ["RETRY_BASE_DELAY", inSeconds("OutboxDispatcher__BaseRetryDelaySeconds")] },
  ),
  RETRY_MAX_DELAY_MS: setting(
    "retry.maxDelay",
    duration({ minMs: 0, maxMs: 365 * DAY }).optional(),
    "Longest delay between two attempts; default: 5 m, 24 h for an Open Outbox table",
    { aliases: ["RETRY_MAX_DELAY", inSeconds("OutboxDispatcher__MaxRetryDelaySeconds")] },
  ),
  RETRY_JITTER: setting("retry.jitter", decimal(0, 1).optional(), "Share of a delay that is added at random"),
  RETRY_SCHEDULE: setting(
    "retry.schedule",
    list().optional(),
    "List of delays between attempts instead of computed ones: 30s,5m,30m means four attempts",
  ),
  ON_EXHAUSTED: setting(
    "retry.onExhausted",
    oneOf(["park", "block", "skip"]).optional(),
    "What to do with a key whose head has no attempts left: park the key, retry the head for ever (block), or skip the head",
  ),
};
