import { RelayError } from "../../core/errors.ts";

/** TLS settings, in PEM. */
export interface NatsTls {
  /** One or several certificates, in PEM. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Options of `natsPublisher`. */
export interface NatsPublisherOptions {
  readonly name?: string;
  /** `host:port` of some servers of the cluster; they are tried one after another. */
  readonly servers: readonly string[];
  /** The stream that must store the events. Default: any stream that captures the subject. */
  readonly stream?: string;
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  /** The text of a credentials file: a JWT and the seed of its key. */
  readonly credentials?: string;
  /** True requires TLS. Without it TLS is used only if the server requires it. */
  readonly tls?: boolean | NatsTls;
  /** The connections' name in the server's monitoring. */
  readonly service?: string;
  readonly connectTimeoutMs?: number;
  /** How long a publish starts new messages; keep it well below the engine's publish timeout. */
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
  /** Null: only if the server requires it. */
  readonly tls: NatsTls | null;
  readonly service: string;
  readonly connectTimeoutMs: number;
  readonly sendTimeoutMs: number;
}

/** Below the engine's publish timeout of 5 s, so that a timeout is reported with its reason. */
const CONNECT_TIMEOUT_MS = 3_000;
const SEND_TIMEOUT_MS = 3_000;

/** A protocol line is limited to 4,096 bytes; the rest is for the reply subject and two sizes. */
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

/** Null when the stream name is legal, else what is wrong with it. */
export function streamFault(stream: string): string | null {
  if (stream === "") return "the stream's name is empty";
  const bad = /[\s.*>/\\\p{C}]/u.exec(stream);
  return bad === null ? null : `the stream's name ${JSON.stringify(stream)} contains ${JSON.stringify(bad[0])}`;
}

/**
 * Null when the subject is legal, else what is wrong with it. The server itself would accept some subjects that no
 * client can subscribe to.
 */
export function subjectFault(subject: string): string | null {
  if (subject === "") return "the subject is empty";
  const shown = JSON.stringify(subject.length > 200 ? `${subject.slice(0, 200)}…` : subject);
  const bad = /[\s*>\p{Cc}]/u.exec(subject);
  if (bad !== null) return `the subject ${shown} contains ${JSON.stringify(bad[0])}`;
  if (subject.split(".").includes("")) return `the subject ${shown} has an empty part between its dots`;
  // Subjects with this prefix are commands to the server: an event could delete the stream.
  if (subject.startsWith("$")) return `the subject ${shown} begins with "$", which is reserved for the server`;
  if (!subject.isWellFormed()) return `the subject ${shown} contains half a character (a lone surrogate)`;
  const bytes = Buffer.byteLength(subject);
  return bytes > SUBJECT_BYTES_MAX ? `the subject has ${bytes} bytes, ${SUBJECT_BYTES_MAX} are allowed` : null;
}

/** The secrets in the settings; no error text may show them. */
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
    // The error does not show it, because it may contain a password.
    check(host !== undefined && port > 0 && port < 65_536, 'an entry of servers is not of the form "host:port"');
    return { host, port };
  });
}

function loginOf({ user, password, token, credentials }: NatsPublisherOptions): NatsLogin {
  const logins = [user, token, credentials].filter((login) => login !== undefined);
  check(logins.length <= 1, "user, token and credentials are alternatives: set only one");
  check(password === undefined || user !== undefined, "password is set but user is not");
  if (user !== undefined) return { kind: "user", user, password: password ?? "" };
  if (token !== undefined) return { kind: "token", token };
  if (credentials === undefined) return { kind: "none" };
  check(/BEGIN NATS USER JWT/.test(credentials), "credentials is not the content of a credentials file");
  return { kind: "credentials", credentials };
}

function countOf(setting: string, value: number | undefined, fallback: number): number {
  const isRight = value === undefined || (Number.isSafeInteger(value) && value > 0);
  check(isRight, `${setting} is ${value}, a whole number above 0 is expected`);
  return value ?? fallback;
}
