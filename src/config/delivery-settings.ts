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
import { ENVELOPES, writtenDestinations, writtenRoutes } from "./written-routes.ts";

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

export const sourceSettings = {
  OUTBOX_SCHEMAS: setting(
    "sources.schemas",
    list().optional(),
    "Schemas whose outbox tables are read, or * for every schema that has one",
  ),
  OUTBOX_TABLE: setting("sources.table", text(200).optional(), "One table of events, as schema.table"),
  OUTBOX_STORE: setting(
    "sources.store",
    text().optional(),
    "An outbox in Redis instead of a database: redis://host:port/0?name=OUTBOX",
    { secret: "address" },
  ),
  OUTBOX_ONLY: setting(
    "sources.only",
    list().optional(),
    "Only events of these types, * stands for anything: a pipeline of their own. The others are left to other relays, none of which may take these too",
  ),
  OUTBOX_INTENTS: setting(
    "intents.folder",
    text().optional(),
    "The folder of the intent relays, one file <intent>-relay.ts each; relays beside the config file or in this folder by default, if it holds some",
  ),
  OUTBOX_COLUMNS: setting(
    "sources.columns",
    pairs().optional(),
    "Columns under names of their own: id=No,type=kind,flags=done+sent (id, type, key, payload, headers, correlationId, createdAt, order, flags, status, nextAttemptAt, attempts, lastError; of a log position and xid)",
  ),
  POLL_INTERVAL_MS: setting(
    "sources.pollInterval",
    duration({ minMs: 1, maxMs: HOUR }).optional(),
    "The longest pause between two looks at an idle table; 500 ms by default, 5 s for a worker's table",
    { aliases: ["POLL_INTERVAL", inSeconds("OutboxDispatcher__PollingIntervalSeconds")] },
  ),
  RETENTION: setting(
    "sources.retention",
    duration({ minMs: SECOND, maxMs: 3_650 * DAY }).optional(),
    "Delivered rows older than this are deleted; they stay by default",
    { aliases: ["RETENTION_MS"] },
  ),
  LANES: setting(
    "relay.lanes",
    wholeNumber(1, 1_024).default(4),
    "Lanes of a new pipeline; later the database knows the number",
  ),
  LEASE_TIMEOUT: setting(
    "relay.leaseTimeout",
    duration({ minMs: 2 * SECOND, maxMs: HOUR }).optional(),
    "Claims in an Open Outbox table are taken from another relay after this time; 3 m by default. Where it is below 10 s, it is also the default of INSTANCE_LEASE",
    { aliases: ["LEASE_TIMEOUT_MS"] },
  ),
  INSTANCE_LEASE: setting(
    "relay.instanceLease",
    duration({ minMs: 2 * SECOND, maxMs: HOUR }).optional(),
    "An instance without a heartbeat for this time is taken for dead, and others take its lanes over; 10 s by default, less where LEASE_TIMEOUT is less, and as much of it as PUBLISH_TIMEOUT needs",
    { aliases: ["INSTANCE_LEASE_MS"] },
  ),
  REAP_BATCH_SIZE: setting(
    "relay.reapBatchSize",
    wholeNumber(1, 100_000).optional(),
    "Claims of dead relays in an Open Outbox table that are freed in one step; 1,000 by default",
  ),
  PUBLISH_TIMEOUT: setting(
    "relay.publishTimeout",
    duration({ minMs: 100, maxMs: HOUR }).optional(),
    "A publish without an answer is given up after this time; half of the lease by default, 5 s at most",
    { aliases: ["PUBLISH_TIMEOUT_MS"] },
  ),
};

export const destinationSettings = {
  OUTBOX_DESTINATION: setting(
    "destination.url",
    text().optional(),
    "Where the events go: kafka://, amqp://, nats://, redis://, bullmq+redis://, sqs://, https://, stdout: or discard:",
    { aliases: ["PUBLISHER_URL"], secret: "address" },
  ),
  PUBLISHER_TYPE: setting("destination.type", text(50).optional(), "The scheme of PUBLISHER_URL, where that has none"),
  DELIVERY: setting(
    "destination.delivery",
    oneOf(["exactly-once", "at-least-once"]).optional(),
    "The strongest that the destination offers by default",
  ),
  BATCH_SIZE: setting(
    "destination.batchSize",
    wholeNumber(1, 100_000).optional(),
    "Events in one publish; 500 by default, 100 for an Open Outbox, worker or intent table",
    { aliases: ["OutboxDispatcher__BatchSize"] },
  ),
  TRANSACTION_SIZE: setting(
    "destination.transactionSize",
    wholeNumber(1, 100_000).optional(),
    "Events in one transaction of an exactly-once destination; 5,000 by default",
  ),
  RATE_LIMIT: setting(
    "destination.rateLimit",
    wholeNumber(1, 1_000_000).optional(),
    "Events per second that the destination is given at most; as many as it takes by default",
  ),
  OUTBOX_DESTINATIONS: setting(
    "destinations",
    structure(writtenDestinations, "{orders: {url: 'kafka://host:9092'}}").optional(),
    "Several destinations by name, each with the keys that destination has: {orders: {url: ...}, audit: {url: ...}}",
    { secret: "parts" },
  ),
  OUTBOX_ROUTES: setting(
    "routes",
    structure(writtenRoutes, "[{types: [order.placed], destination: orders}]").optional(),
    "Which events go where, as what; the first that matches takes the event",
  ),
  TOPICS_CREATE: setting(
    "topics.create",
    flag().optional(),
    "true creates unknown topics, false never does; by default the broker decides",
  ),
  TOPIC_TEMPLATE: setting(
    "messages.topic",
    text().optional(),
    "The topic, such as outbox.{type}; the event's type by default",
  ),
  KEY_TEMPLATE: setting(
    "messages.key",
    text().optional(),
    "The message's key, such as {header:tenant}; the event's key by default",
  ),
  HEADERS_TEMPLATE: setting(
    "messages.headers",
    pairs().optional(),
    "More headers, such as x-source={schema}.{table},x-tenant={key}",
  ),
  ENVELOPE: setting(
    "messages.envelope",
    oneOf(ENVELOPES).optional(),
    "raw sends the payload as it is; or CloudEvents 1.0 with the attributes in headers, or as one JSON document",
  ),
  CLOUDEVENTS_SOURCE: setting(
    "messages.source",
    text(500).optional(),
    "The source of a CloudEvent, a template; /SERVICE_NAME/{schema}/{table} by default",
  ),
  CONTENT_TYPE: setting(
    "messages.contentType",
    text(200).optional(),
    "What the payloads are, where an event's own header content-type does not say it; application/json in a CloudEvent",
  ),
};

export const kafkaSettings = {
  KAFKA_BROKERS: setting(
    "destination.kafka.brokers",
    list().optional(),
    "Some brokers of the cluster, as host:port,host:port",
  ),
  KAFKA_SASL_MECHANISM: setting(
    "destination.kafka.sasl.mechanism",
    oneOf(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]).optional(),
    "How to log in; PLAIN when there is a user",
  ),
  KAFKA_USERNAME: setting("destination.kafka.sasl.username", text().optional(), "The user of PLAIN and SCRAM"),
  KAFKA_PASSWORD: setting("destination.kafka.sasl.password", text().optional(), "Its password", { secret: true }),
  KAFKA_OAUTH_TOKEN: setting("destination.kafka.sasl.token", text(100_000).optional(), "A token for OAUTHBEARER", {
    secret: true,
  }),
  KAFKA_OAUTH_TOKEN_URL: setting(
    "destination.kafka.sasl.tokenUrl",
    text().optional(),
    "Where to ask for tokens, with client credentials",
    { secret: "address" },
  ),
  KAFKA_OAUTH_CLIENT_ID: setting("destination.kafka.sasl.clientId", text().optional(), "The client's id there"),
  KAFKA_OAUTH_CLIENT_SECRET: setting("destination.kafka.sasl.clientSecret", text().optional(), "Its secret", {
    secret: true,
  }),
  KAFKA_OAUTH_SCOPE: setting("destination.kafka.sasl.scope", text().optional(), "The scope to ask for"),
  KAFKA_SSL: setting(
    "destination.kafka.tls.enabled",
    flag().optional(),
    "TLS to the brokers; on when one of the certificates is given",
  ),
  KAFKA_SSL_CA: setting("destination.kafka.tls.ca", pem().optional(), "The certificates to trust, in PEM", {
    secret: true,
  }),
  KAFKA_SSL_CERT: setting("destination.kafka.tls.cert", pem().optional(), "The relay's own certificate, in PEM", {
    secret: true,
  }),
  KAFKA_SSL_KEY: setting("destination.kafka.tls.key", pem().optional(), "Its key, in PEM", { secret: true }),
  KAFKA_SSL_KEY_PASSPHRASE: setting("destination.kafka.tls.passphrase", text().optional(), "The key's passphrase", {
    secret: true,
  }),
  KAFKA_COMPRESSION: setting(
    "destination.kafka.compression",
    oneOf(["none", "gzip", "lz4", "zstd", "snappy"]).optional(),
    "none by default",
  ),
  KAFKA_LEDGER_TOPIC: setting(
    "destination.kafka.ledgerTopic",
    matching(/^[a-zA-Z0-9._-]{1,249}$/, 'a topic\'s name: letters, digits, ".", "_" and "-"').optional(),
    "The topic of the exactly-once ledger; outbox-relay.ledger.SERVICE_NAME by default",
  ),
};

export const failureSettings = {
  MAX_RETRIES: setting(
    "retry.maxAttempts",
    wholeNumber(1, 1_000).optional(),
    "The failure with this number is the last; 10 by default, 25 for an Open Outbox table",
    { aliases: ["RETRY_MAX_ATTEMPTS", retriesAfterFirst("OutboxDispatcher__MaxRetryAttempts")] },
  ),
  RETRY_INITIAL_DELAY_MS: setting(
    "retry.initialDelay",
    duration({ minMs: 0, maxMs: DAY }).optional(),
    "The pause after the first failure; it doubles with each further one",
    { aliases: ["RETRY_BASE_DELAY", inSeconds("OutboxDispatcher__BaseRetryDelaySeconds")] },
  ),
  RETRY_MAX_DELAY_MS: setting(
    "retry.maxDelay",
    duration({ minMs: 0, maxMs: 365 * DAY }).optional(),
    "The longest pause; 5 m by default, 24 h for an Open Outbox table",
    { aliases: ["RETRY_MAX_DELAY", inSeconds("OutboxDispatcher__MaxRetryDelaySeconds")] },
  ),
  RETRY_JITTER: setting("retry.jitter", decimal(0, 1).optional(), "The share of a pause that is added at random"),
  RETRY_SCHEDULE: setting(
    "retry.schedule",
    list().optional(),
    "The pauses between tries one by one instead of computed ones: 30s,5m,30m is four tries",
  ),
  ON_EXHAUSTED: setting(
    "retry.onExhausted",
    oneOf(["park", "block", "skip"]).optional(),
    "What becomes of a key whose head is dead: park it, try for ever, or skip the head",
  ),
};
