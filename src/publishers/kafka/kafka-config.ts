import { isIPv6 } from "node:net";
import { RelayError } from "../../core/errors.ts";
import type { TlsOptionsWithPassphrase } from "../../core/tls.ts";

/** TLS settings, in PEM. */
export type KafkaTls = TlsOptionsWithPassphrase;

/** How to log in to the brokers. */
export type KafkaSasl =
  | {
      readonly mechanism: "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512";
      readonly username: string;
      readonly password: string;
    }
  | {
      readonly mechanism: "OAUTHBEARER";
      /** A function is called for each connection, so that it can return a fresh token. */
      readonly token: string | (() => Promise<string>);
    };

/** The compression of record batches. */
export type KafkaCompression = "none" | "gzip" | "lz4" | "zstd" | "snappy";

/** Options of `kafkaPublisher`. */
export interface KafkaPublisherOptions {
  readonly name?: string;
  /** Bootstrap servers: `host:port` of some brokers of the cluster. */
  readonly brokers: readonly string[];
  /** The client id; also the prefix of the transactional ids and part of the ledger topic's name. */
  readonly service?: string;
  readonly delivery?: "exactly-once" | "at-least-once";
  readonly tls?: boolean | KafkaTls;
  readonly sasl?: KafkaSasl;
  /** Undefined: the broker's `auto.create.topics.enable` decides. True creates topics with the broker's defaults. */
  readonly createTopics?: boolean | { readonly partitions: number; readonly replicationFactor: number };
  readonly ledger?: { readonly topic?: string; readonly replicationFactor?: number; readonly ringSize?: number };
  readonly compression?: KafkaCompression;
  readonly connectTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  readonly transactionTimeoutMs?: number;
}

export interface BrokerAddress {
  readonly host: string;
  readonly port: number;
}

/** The options with every default filled in. */
export interface KafkaSettings {
  readonly name: string;
  readonly brokers: readonly BrokerAddress[];
  readonly service: string;
  readonly delivery: "exactly-once" | "at-least-once";
  readonly tls: KafkaTls | null;
  readonly sasl: KafkaSasl | null;
  /** Whether a metadata request for an unknown topic lets the broker create it. */
  readonly autoCreate: boolean;
  /** How the relay itself creates an unknown topic; null: it does not. -1 means the broker's default. */
  readonly creation: { readonly partitions: number; readonly replicationFactor: number } | null;
  readonly ledger: { readonly topic: string; readonly replicationFactor: number; readonly ringSize: number };
  readonly compression: KafkaCompression;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly transactionTimeoutMs: number;
}

const COMPRESSIONS: readonly string[] = ["none", "gzip", "lz4", "zstd", "snappy"] satisfies KafkaCompression[];

/** Below the engine's publish timeout of 5 s, so that a timeout is reported with its reason. */
const REQUEST_TIMEOUT_MS = 4_000;
const CONNECT_TIMEOUT_MS = 3_000;
const TRANSACTION_TIMEOUT_MS = 60_000;
/** The prefix of all ledger topics. Events must not be written to any of them, also not to another service's. */
export const LEDGER_PREFIX = "outbox-relay.ledger.";
/**
 * A lane commits up to 200 small batches a second, so the ring covers at least the last 20 seconds. A promoted
 * asynchronous standby may have lagged that far.
 */
const RING_SIZE = 4_096;
const BROKER_DEFAULT = -1;

/** Fills in the defaults; throws CONFIG_INVALID with the setting's name. */
export function kafkaSettings(options: KafkaPublisherOptions): KafkaSettings {
  const { name = "kafka", service = "outbox-relay", delivery = "exactly-once", createTopics } = options;
  const { topic = `${LEDGER_PREFIX}${service}`, ...ledger } = options.ledger ?? {};
  check(isServiceName(service), `service "${service}" must consist of 1 to 100 letters, digits, ".", "_" and "-"`);
  check(
    delivery === "exactly-once" || delivery === "at-least-once",
    `delivery "${delivery}" is unknown: write "exactly-once" or "at-least-once"`,
  );
  check(
    COMPRESSIONS.includes(options.compression ?? "none"),
    `compression "${options.compression}" is unknown: write one of ${COMPRESSIONS.join(", ")}`,
  );
  return {
    name,
    brokers: brokersOf(options.brokers),
    service,
    delivery,
    tls: tlsOf(options.tls),
    sasl: saslOf(options.sasl),
    autoCreate: createTopics === undefined,
    creation: creationOf(createTopics),
    ledger: {
      topic: legalTopic("ledger.topic", topic),
      replicationFactor: countOf("ledger.replicationFactor", ledger.replicationFactor, BROKER_DEFAULT),
      ringSize: countOf("ledger.ringSize", ledger.ringSize, RING_SIZE),
    },
    compression: options.compression ?? "none",
    connectTimeoutMs: countOf("connectTimeoutMs", options.connectTimeoutMs, CONNECT_TIMEOUT_MS),
    requestTimeoutMs: countOf("requestTimeoutMs", options.requestTimeoutMs, REQUEST_TIMEOUT_MS),
    transactionTimeoutMs: countOf("transactionTimeoutMs", options.transactionTimeoutMs, TRANSACTION_TIMEOUT_MS),
  };
}

/** Null when the name is legal, else what is wrong with it. The brokers apply the same rules. */
export function topicFault(topic: string): string | null {
  if (topic === "") return "the topic's name is empty";
  if (topic === "." || topic === "..") return `a topic cannot be named "${topic}"`;
  if (topic.length > 249) return `the topic's name is ${topic.length} characters long, 249 are allowed`;
  const bad = /[^a-zA-Z0-9._-]/u.exec(topic);
  return bad === null ? null : `the topic's name ${JSON.stringify(topic)} contains ${JSON.stringify(bad[0])}`;
}

/** The secrets in the settings; no error text may show them. */
export function secretsOf({ sasl, tls }: KafkaSettings): string[] {
  const secrets = [tls?.passphrase];
  if (sasl?.mechanism === "OAUTHBEARER") secrets.push(typeof sasl.token === "string" ? sasl.token : undefined);
  else secrets.push(sasl?.password);
  return secrets.filter((secret) => secret !== undefined && secret !== "") as string[];
}

/** `host:port,host:port`. */
export function describeBrokers(brokers: readonly BrokerAddress[]): string {
  return brokers.map(({ host, port }) => `${isIPv6(host) ? `[${host}]` : host}:${port}`).join(",");
}

function check(isRight: boolean, what: string): asserts isRight {
  if (!isRight) throw new RelayError("CONFIG_INVALID", `Kafka: ${what}.`);
}

function brokersOf(brokers: readonly string[]): BrokerAddress[] {
  check(Array.isArray(brokers) && brokers.length > 0, 'brokers is empty: name at least one as "host:port"');
  return brokers.map((broker) => {
    const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:\s/]+)):(\d+)$/.exec(broker) ?? [];
    const port = Number(digits);
    const host = bracketed ?? plain;
    check(host !== undefined && port > 0 && port < 65_536, `brokers: "${broker}" is not of the form "host:port"`);
    return { host, port };
  });
}

function isServiceName(service: string): boolean {
  return /^[a-zA-Z0-9._-]{1,100}$/.test(service);
}

function legalTopic(setting: string, topic: string): string {
  const fault = topicFault(topic);
  check(fault === null, `${setting}: ${fault}`);
  return topic;
}

function tlsOf(tls: boolean | KafkaTls | undefined): KafkaTls | null {
  if (tls === undefined || tls === false) return null;
  if (tls === true) return {};
  check((tls.cert === undefined) === (tls.key === undefined), "tls.cert and tls.key only work together");
  return tls;
}

function saslOf(sasl: KafkaSasl | undefined): KafkaSasl | null {
  if (sasl === undefined) return null;
  if (sasl.mechanism === "OAUTHBEARER") {
    check(sasl.token !== undefined && sasl.token !== "", "sasl.token is missing");
    return sasl;
  }
  const known = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"];
  check(
    known.includes(sasl.mechanism),
    `sasl.mechanism "${sasl.mechanism}" is none of ${known.join(", ")}, OAUTHBEARER`,
  );
  check(Boolean(sasl.username), "sasl.username is missing");
  check(Boolean(sasl.password), "sasl.password is missing");
  return sasl;
}

function creationOf(createTopics: KafkaPublisherOptions["createTopics"]): KafkaSettings["creation"] {
  if (createTopics === undefined || createTopics === false) return null;
  if (createTopics === true) return { partitions: BROKER_DEFAULT, replicationFactor: BROKER_DEFAULT };
  return {
    partitions: countOf("createTopics.partitions", createTopics.partitions, BROKER_DEFAULT),
    replicationFactor: countOf("createTopics.replicationFactor", createTopics.replicationFactor, BROKER_DEFAULT),
  };
}

function countOf(setting: string, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback;
  const isRight = Number.isSafeInteger(value) && (value > 0 || value === fallback);
  check(isRight, `${setting} is ${value}, a whole number above 0 is expected`);
  return value;
}

/** Below the broker's default of 1 MiB for a batch. */
const BATCH_BYTES = 900_000;

/** The maximum size of a topic's record batch. Only the broker knows it, so this learns from refused batches. */
export class BatchLimits {
  readonly #learned = new Map<string, number>();

  of(topic: string): number {
    return this.#learned.get(topic) ?? BATCH_BYTES;
  }

  /** The broker refused a batch of several records with this size. */
  refused(topic: string, bytes: number): void {
    this.#learned.set(topic, Math.min(this.of(topic), Math.floor(bytes / 2)));
  }
}
