import { isIP } from "node:net";
import type { Base, BaseOptions, Connection, SASLOptions } from "@platformatic/kafka";
import { RelayError } from "../../core/errors.ts";
import { optionalClient } from "../../core/optional-client.ts";
import type { BrokerAddress, KafkaSasl, KafkaSettings } from "./kafka-config.ts";

/** The client library. */
export type Kafka = typeof import("@platformatic/kafka");

/**
 * Connections to a cluster and its metadata. This adapter itself decides what is sent over them, and what is retried.
 */
export type KafkaClient = Base;
export type KafkaConnection = Connection;

/** An API of the protocol in the version that client and broker have in common. */
export interface KafkaApi {
  readonly version: number;
  /** Rejects with the client's error; one that the broker answered has the `response` in it. */
  async(connection: KafkaConnection, ...request: readonly unknown[]): Promise<unknown>;
}

/** Other minor versions have other faults, and this adapter leans on details of this one. */
const CLIENT_LINE = "2.12";
const PACKAGE = `@platformatic/kafka@${CLIENT_LINE}`;

export const loadKafka: () => Promise<Kafka> = optionalClient("the Kafka client", PACKAGE, () =>
  import("@platformatic/kafka").then((kafka) => checkClientVersion(kafka.clientSoftwareVersion, kafka)),
);

/** On an old Node, a package manager silently installs a version of the client that loses messages. */
export function checkClientVersion<T>(version: string, kafka: T): T {
  if (version.startsWith(`${CLIENT_LINE}.`)) return kafka;
  const found = `version ${version} of the Kafka client is installed, but only ${CLIENT_LINE} is proved to work`;
  throw new RelayError("CONFIG_INVALID", `${found}: npm install ${PACKAGE}.`);
}

/** Opens no connection yet: the first request does. */
export function openClient(kafka: Kafka, settings: KafkaSettings): KafkaClient {
  const tls = settings.tls === null ? undefined : { ...settings.tls };
  const options: BaseOptions = {
    clientId: settings.service,
    bootstrapBrokers: [...settings.brokers],
    connectTimeout: settings.connectTimeoutMs,
    requestTimeout: settings.requestTimeoutMs,
    // The client would retry unanswered requests; only this adapter knows when that is safe.
    retries: 0,
    // A producer's requests to one broker go one at a time, or a retry could change their order.
    maxInflights: 1,
    ...(tls === undefined ? {} : { tls }),
    ...(settings.sasl === null ? {} : { sasl: saslOptions(settings.sasl) }),
  };
  const client = new kafka.Base(options);
  client.connections.on("connecting", ({ broker, connection }) => {
    // The client removes its own listener after the first error; a second error would end the process.
    connection.on("error", (error) => lastErrors.set(client, error));
    // Node sends the server name (SNI) only if it is set, and an IP address is not allowed as one.
    if (tls !== undefined && settings.tls?.servername === undefined) {
      if (isIP(broker.host) === 0) tls.servername = broker.host;
      else delete tls.servername;
    }
  });
  client.connections.on("connect", () => lastErrors.delete(client));
  searches.set(client, { brokers: settings.brokers, next: 0, versions: null });
  return client;
}

/** The state of a client's search for a broker, and the API versions of the broker it found. */
interface Search {
  readonly brokers: readonly BrokerAddress[];
  next: number;
  versions: Promise<ReadonlyMap<string, VersionRange>> | null;
}

interface VersionRange {
  readonly minVersion: number;
  readonly maxVersion: number;
}

const searches = new WeakMap<KafkaClient, Search>();

/** The last error of a client's connections: requests on a broken connection only report that it closed. */
const lastErrors = new WeakMap<KafkaClient, Error>();

/** The error combined with the last error of the client's connections. */
export function explained(client: KafkaClient, error: unknown): unknown {
  const last = lastErrors.get(client);
  return last === undefined ? error : new AggregateError([last, error], last.message);
}

/** Closes all connections at once: data that is not sent yet is never sent. Resolves when the sockets are closed. */
export async function destroyClient(client: KafkaClient): Promise<void> {
  const sockets = [...client.connections].map(([, connection]) => connection.socket);
  // Destroy them before the client closes them gracefully: a socket that is already ending cannot be reset and could
  // stay open forever.
  for (const socket of sockets) socket?.destroy();
  await client.close().catch(() => {});
}

/** A connection to this broker. */
export function connectionTo(kafka: Kafka, client: KafkaClient, broker: BrokerAddress): Promise<KafkaConnection> {
  return promised((done) => client[kafka.kGetConnection](broker, done));
}

/**
 * A connection to any broker: an open one if there is one, else a new one. A broker that accepts connections may still
 * hang, so each search starts at the next broker; the client's own search would always start with the first.
 */
export async function anyConnection(kafka: Kafka, client: KafkaClient, attempt = 0): Promise<KafkaConnection> {
  const standing = [...client.connections].map(([, connection]) => connection).filter((it) => it.isConnected());
  if (standing.length > 0) return standing[attempt % standing.length]!;
  const search = searches.get(client)!;
  const errors: unknown[] = [];
  for (let tried = 0; tried < search.brokers.length; tried++) {
    const broker = search.brokers[search.next++ % search.brokers.length]!;
    try {
      return await connectionTo(kafka, client, broker);
    } catch (error) {
      errors.push(error);
    }
  }
  throw new AggregateError(errors, "no broker can be reached");
}

/** The highest version of an API that broker and client share. The first call asks a broker for its versions. */
export async function apiOf(kafka: Kafka, client: KafkaClient, name: string): Promise<KafkaApi> {
  const search = searches.get(client)!;
  search.versions ??= versionsOf(kafka, client).catch((error: unknown) => {
    search.versions = null;
    throw error;
  });
  const range = (await search.versions).get(name);
  const known = kafka as unknown as Readonly<Record<string, { readonly api: KafkaApi } | undefined>>;
  const stem = name.charAt(0).toLowerCase() + name.slice(1);
  for (let version = range?.maxVersion ?? -1; version >= (range?.minVersion ?? 0); version--) {
    const found = known[`${stem}V${version}`];
    if (found !== undefined) return found.api;
  }
  throw new RelayError(
    "CONFIG_INVALID",
    `the Kafka brokers and the client share no version of ${name}: upgrade the brokers.`,
  );
}

async function versionsOf(kafka: Kafka, client: KafkaClient): Promise<ReadonlyMap<string, VersionRange>> {
  const connection = await anyConnection(kafka, client);
  const { clientSoftwareName, clientSoftwareVersion } = kafka;
  const { apiKeys } = await kafka.apiVersionsV3.api.async(connection, clientSoftwareName, clientSoftwareVersion);
  return new Map(apiKeys.map(({ name, minVersion, maxVersion }) => [name, { minVersion, maxVersion }]));
}

function promised<T>(start: (done: (error: Error | null, result?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, result) => (error ? reject(error) : resolve(result as T)));
  });
}

function saslOptions(sasl: KafkaSasl): SASLOptions {
  if (sasl.mechanism !== "OAUTHBEARER") return { ...sasl };
  return {
    mechanism: sasl.mechanism,
    token: sasl.token,
    // A broker reports a rejected token in a response without an error code, which the client would take for success.
    authBytesValidator: (answer: Buffer, done) => {
      if (answer.length === 0) done(null, answer);
      else done(new Error(`the broker refused the token: ${oauthStatus(answer)}`));
    },
  };
}

/** The status only: the rest of the response may quote the token. */
function oauthStatus(answer: Buffer): string {
  return /"status"\s*:\s*"([\w.-]{1,100})"/.exec(answer.toString("utf8"))?.[1] ?? "no reason given";
}
