import { isIP } from "node:net";
import type { Base, BaseOptions, Connection, SASLOptions } from "@platformatic/kafka";
import { RelayError } from "../../core/errors.ts";
import type { BrokerAddress, KafkaSasl, KafkaSettings } from "./kafka-config.ts";

export type Kafka = typeof import("@platformatic/kafka");

/** Connections to a cluster and its metadata. What is sent over them, and whether again, is our own business. */
export type KafkaClient = Base;
export type KafkaConnection = Connection;

/** An API of the protocol in the version that client and broker have in common. */
export interface KafkaApi {
  readonly version: number;
  /** Rejects with the client's error; one that the broker answered has the `response` in it. */
  async(connection: KafkaConnection, ...request: readonly unknown[]): Promise<unknown>;
}

/** Other versions have other faults, and this adapter leans on details of this one. */
const CLIENT_VERSION = "2.12.1";
const INSTALL = `npm install --save-exact @platformatic/kafka@${CLIENT_VERSION}`;

let loading: Promise<Kafka> | undefined;

/** The client is an optional peer dependency: without it the error says what to install. */
export function loadKafka(): Promise<Kafka> {
  loading ??= import("@platformatic/kafka").then(
    (kafka) => checkClientVersion(kafka.clientSoftwareVersion, kafka),
    (cause: unknown) => {
      throw new RelayError("CONFIG_INVALID", `the Kafka client is missing, install it: ${INSTALL}.`, { cause });
    },
  );
  return loading;
}

/** A package manager on an old Node silently picks a client that loses messages. */
export function checkClientVersion<T>(version: string, kafka: T): T {
  if (version === CLIENT_VERSION) return kafka;
  const found = `version ${version} of the Kafka client is installed, but only ${CLIENT_VERSION} is proved to work`;
  throw new RelayError("CONFIG_INVALID", `${found}: ${INSTALL}.`);
}

/** Opens nothing yet: connections are made when they are asked for. */
export function openClient(kafka: Kafka, settings: KafkaSettings): KafkaClient {
  const tls = settings.tls === null ? undefined : { ...settings.tls };
  const options: BaseOptions = {
    clientId: settings.service,
    bootstrapBrokers: [...settings.brokers],
    connectTimeout: settings.connectTimeoutMs,
    requestTimeout: settings.requestTimeoutMs,
    // The client would repeat requests that nobody answered; only we know when that is harmless.
    retries: 0,
    // A producer's requests to one broker go one after another, or a retry could overtake.
    maxInflights: 1,
    ...(tls === undefined ? {} : { tls }),
    ...(settings.sasl === null ? {} : { sasl: saslOptions(settings.sasl) }),
  };
  const client = new kafka.Base(options);
  client.connections.on("connecting", ({ broker, connection }) => {
    // The client takes its own listener away after the first error, and the second would end the process.
    connection.on("error", (error) => lastErrors.set(client, error));
    // Node names the wanted host to the broker only when told to; an address of digits must not be named.
    if (tls !== undefined && settings.tls?.servername === undefined) {
      if (isIP(broker.host) === 0) tls.servername = broker.host;
      else delete tls.servername;
    }
  });
  client.connections.on("connect", () => lastErrors.delete(client));
  searches.set(client, { brokers: settings.brokers, next: 0, versions: null });
  return client;
}

/** Where a client looks for a broker, and what the one that it found can do. */
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

/** What a connection said when it broke: the requests that were on it only know that it did. */
const lastErrors = new WeakMap<KafkaClient, Error>();

/** The error together with what the client's connection said of itself. */
export function explained(client: KafkaClient, error: unknown): unknown {
  const last = lastErrors.get(client);
  return last === undefined ? error : new AggregateError([last, error], last.message);
}

/**
 * Takes the connections away at once, whatever is on them: nothing that was not sent yet is sent any more. Resolves
 * when the sockets are closed.
 */
export async function destroyClient(client: KafkaClient): Promise<void> {
  const sockets = [...client.connections].map(([, connection]) => connection.socket);
  // Before the client closes them in good order: a socket that is ending cannot be reset any more and would stay for ever.
  for (const socket of sockets) socket?.destroy();
  await client.close().catch(() => {});
}

export function connectionTo(kafka: Kafka, client: KafkaClient, broker: BrokerAddress): Promise<KafkaConnection> {
  return promised((done) => client[kafka.kGetConnection](broker, done));
}

/**
 * A connection to any broker: one that stands, else a new one. A broker that can be connected may still hang, so every
 * new search begins at the next one; the client's own would always begin with the first.
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
  throw new AggregateError(errors, "no broker can be connected");
}

/** Asks a broker what it can do when it is called for the first time. */
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
  throw new RelayError("CONFIG_INVALID", `this version of Kafka and its client have no version of ${name} in common.`);
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
    // A refused token is told inside an answer without an error code; the client would take it for a success.
    authBytesValidator: (answer: Buffer, done) => {
      if (answer.length === 0) done(null, answer);
      else done(new Error(`the broker refused the token: ${oauthStatus(answer)}`));
    },
  };
}

/** The status alone: what else the broker says may quote the token. */
function oauthStatus(answer: Buffer): string {
  return /"status"\s*:\s*"([\w.-]{1,100})"/.exec(answer.toString("utf8"))?.[1] ?? "no reason given";
}
