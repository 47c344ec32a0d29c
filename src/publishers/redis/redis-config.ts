import { RelayError } from "../../core/errors.ts";

export interface RedisTls {
  /** PEM text, of one or several certificates. */
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** The name that the server's certificate bears, when it is not the name it is reached by. */
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface RedisPublisherOptions {
  readonly name?: string;
  /** One, as `host:port`. */
  readonly hosts: readonly string[];
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
  readonly tls?: boolean | RedisTls;
  /** Entries that a stream keeps, about; older ones are trimmed away, read or not. Undefined: all. */
  readonly maxlen?: number;
  /** For how long an event id is remembered; 0: not at all. */
  readonly dedupeMs?: number;
  /** What the keys of the remembered ids begin with. */
  readonly prefix?: string;
  /** Replicas that must have an event before it counts as delivered. */
  readonly replicas?: number;
  readonly connectTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
}

interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** The options with every default filled in. */
export interface RedisSettings {
  readonly name: string;
  readonly hosts: readonly RedisAddress[];
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  readonly tls: RedisTls | null;
  /** 0: never trimmed. */
  readonly maxlen: number;
  readonly dedupeMs: number;
  readonly prefix: string;
  readonly replicas: number;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

/** Far longer than a relay needs to come back after a crash, and 90 MB for 1,000 events a second. */
const DEDUPE_MS = 600_000;
const PREFIX = "outbox-relay:";
/** Below the engine's publish timeout of 5 s, so that the server's silence is told with its reason. */
const REQUEST_TIMEOUT_MS = 4_000;
const CONNECT_TIMEOUT_MS = 3_000;
const DEDUPE_MS_MAX = 30 * 24 * 3_600_000;
const COUNT_MAX = 2_147_483_647;

/** Fills in the defaults; throws CONFIG_INVALID with the option's name. */
export function redisSettings(options: RedisPublisherOptions): RedisSettings {
  const { name = "redis", prefix = PREFIX, tls } = options;
  const hosts = options.hosts.map(addressOf);
  const replicas = numberOf("replicas", options.replicas, 0, 100, 0);
  const database = numberOf("database", options.database, 0, COUNT_MAX, 0);
  check(hosts.length > 0, "hosts is empty: name at least one as host:port");
  check(hosts.length === 1, "several hosts: a cluster is not supported, name one");
  check(!/[{}]/.test(prefix), "prefix must not contain braces: they decide where a cluster keeps a key");
  check(prefix.isWellFormed() && prefix.length <= 200, "prefix is longer than 200 characters, or no text");
  check(options.username === undefined || options.password !== undefined, "username is set and password is not");
  return {
    name,
    hosts,
    username: options.username ?? null,
    password: options.password ?? null,
    database,
    tls: tls === true ? {} : tls === undefined || tls === false ? null : tls,
    maxlen: options.maxlen === undefined ? 0 : numberOf("maxlen", options.maxlen, 1, Number.MAX_SAFE_INTEGER, 0),
    dedupeMs: numberOf("dedupeMs", options.dedupeMs, 0, DEDUPE_MS_MAX, DEDUPE_MS),
    prefix,
    replicas,
    connectTimeoutMs: numberOf("connectTimeoutMs", options.connectTimeoutMs, 1, COUNT_MAX, CONNECT_TIMEOUT_MS),
    requestTimeoutMs: numberOf("requestTimeoutMs", options.requestTimeoutMs, 1, COUNT_MAX, REQUEST_TIMEOUT_MS),
  };
}

export function describeHosts({ hosts }: RedisSettings): string {
  return hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`).join(",");
}

function addressOf(written: string): RedisAddress {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(written) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65_535) throw invalid("hosts has one that is not of the form host:port");
  return { host, port };
}

function numberOf(option: string, value: number | undefined, min: number, max: number, fallback: number): number {
  if (value === undefined) return fallback;
  check(Number.isInteger(value) && value >= min && value <= max, `${option} must be a whole number from ${min} on`);
  return value;
}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw invalid(what);
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `Redis: ${what}.`);
}
