import { RelayError } from "../../core/errors.ts";

export interface NatsTls {
  /** PEM text, of one or several certificates. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface NatsPublisherOptions {
  readonly name?: string;
  /** `host:port` of some servers of the cluster; they are tried in turn. */
  readonly servers: readonly string[];
  /** The stream that has to take the events; without it any stream that listens to the subject may. */
  readonly stream?: string;
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  /** The text of a credentials file: a JWT and the seed of its key. */
  readonly credentials?: string;
  /** True insists on TLS. A server that demands it gets it anyway. */
  readonly tls?: boolean | NatsTls;
  /** Name of the connections in the server's monitoring. */
  readonly service?: string;
  readonly connectTimeoutMs?: number;
  /** How long a publish goes on sending; stay well below the engine's publish timeout. */
  readonly sendTimeoutMs?: number;
}

export interface NatsServerAddress {
  readonly host: string;
  readonly port: number;
}

export type NatsLogin =
  | { readonly kind: "none" }
  | { readonly kind: "user"; readonly user: string; readonly password: string }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "credentials"; readonly credentials: string };

/** The options with every default filled in. */
export interface NatsSettings {
  readonly name: string;
  readonly servers: readonly NatsServerAddress[];
  readonly stream: string | null;
  readonly login: NatsLogin;
  /** Null: only where the server wants it. */
  readonly tls: NatsTls | null;
  readonly service: string;
  readonly connectTimeoutMs: number;
  readonly sendTimeoutMs: number;
}

/** Below the engine's publish timeout of 5 s, so that the server's silence is told with its reason. */
const CONNECT_TIMEOUT_MS = 3_000;
const SEND_TIMEOUT_MS = 3_000;

/** A protocol line may have 4,096 bytes; beside the subject there is room for the reply subject and two sizes. */
const SUBJECT_BYTES_MAX = 3_900;

/** Fills in the defaults; throws CONFIG_INVALID with the setting's name. */
export function natsSettings(options: NatsPublisherOptions): NatsSettings {
  const { name = "nats", service = "outbox-relay", stream, tls } = options;
  if (stream !== undefined) {
    const fault = streamFault(stream);
    check(fault === null, `stream: ${fault}`);
  }
  const certificates = typeof tls === "object" ? tls : {};
  check(
    (certificates.cert === undefined) === (certificates.key === undefined),
    "tls.cert and tls.key only work together",
  );
  return {
    name,
    servers: serversOf(options.servers),
    stream: stream ?? null,
    login: loginOf(options),
    tls: tls === undefined || tls === false ? null : certificates,
    service,
    connectTimeoutMs: countOf("connectTimeoutMs", options.connectTimeoutMs, CONNECT_TIMEOUT_MS),
    sendTimeoutMs: countOf("sendTimeoutMs", options.sendTimeoutMs, SEND_TIMEOUT_MS),
  };
}

/** Null when a stream may be called so. */
export function streamFault(stream: string): string | null {
  if (stream === "") return "the stream's name is empty";
  const bad = /[\s.*>/\\\p{C}]/u.exec(stream);
  return bad === null ? null : `the stream's name ${JSON.stringify(stream)} contains ${JSON.stringify(bad[0])}`;
}

/** Null when events can be published under it; the server itself would take some that nobody could read. */
export function subjectFault(subject: string): string | null {
  if (subject === "") return "the subject is empty";
  const shown = JSON.stringify(subject.length > 200 ? `${subject.slice(0, 200)}…` : subject);
  const bad = /[\s*>\p{Cc}]/u.exec(subject);
  if (bad !== null) return `the subject ${shown} contains ${JSON.stringify(bad[0])}`;
  if (subject.split(".").includes("")) return `the subject ${shown} has an empty part between its dots`;
  // What begins so is a command to the server: it could delete the stream.
  if (subject.startsWith("$")) return `the subject ${shown} begins with "$", which is the server's own`;
  if (!subject.isWellFormed()) return `the subject ${shown} holds half a character`;
  const bytes = Buffer.byteLength(subject);
  return bytes > SUBJECT_BYTES_MAX ? `the subject has ${bytes} bytes, ${SUBJECT_BYTES_MAX} are allowed` : null;
}

/** The secrets among the settings, which no error text may show. */
export function secretsOf({ login }: NatsSettings): string[] {
  if (login.kind === "user") return [login.password].filter((secret) => secret !== "");
  if (login.kind === "token") return [login.token];
  if (login.kind === "credentials")
    return login.credentials.split("\n").filter((line) => /^[\w.+/=-]{20,}$/.test(line));
  return [];
}

export function describeServers(servers: readonly NatsServerAddress[]): string {
  return servers.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`).join(",");
}

function check(isRight: boolean, what: string): asserts isRight {
  if (!isRight) throw new RelayError("CONFIG_INVALID", `NATS: ${what}.`);
}

function serversOf(servers: readonly string[]): NatsServerAddress[] {
  check(Array.isArray(servers) && servers.length > 0, 'servers is empty: name at least one as "host:port"');
  return servers.map((server) => {
    const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:\s/@]+)):(\d+)$/.exec(server) ?? [];
    const port = Number(digits);
    const host = bracketed ?? plain;
    // Not shown: it may hold a password.
    check(host !== undefined && port > 0 && port < 65_536, 'servers has one that is not of the form "host:port"');
    return { host, port };
  });
}

function loginOf({ user, password, token, credentials }: NatsPublisherOptions): NatsLogin {
  const ways = [user, token, credentials].filter((way) => way !== undefined);
  check(ways.length <= 1, "user, token and credentials are three ways to log in: keep one");
  check(password === undefined || user !== undefined, "password is set and user is not");
  if (user !== undefined) return { kind: "user", user, password: password ?? "" };
  if (token !== undefined) return { kind: "token", token };
  if (credentials === undefined) return { kind: "none" };
  check(/BEGIN NATS USER JWT/.test(credentials), "credentials is no text of a credentials file");
  return { kind: "credentials", credentials };
}

function countOf(setting: string, value: number | undefined, fallback: number): number {
  const isRight = value === undefined || (Number.isSafeInteger(value) && value > 0);
  check(isRight, `${setting} is ${value}, a whole number above 0 is expected`);
  return value ?? fallback;
}
