import { RelayError } from "../../core/errors.ts";
import type { TlsOptions } from "../../core/tls.ts";

/** TLS settings, in PEM. */
export type RedisTls = TlsOptions;

/** Options of `redisPublisher`. */
export interface RedisPublisherOptions {
  readonly name?: string;
  /** Exactly one `host:port`. */
  readonly hosts: readonly string[];
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
  readonly tls?: boolean | RedisTls;
  /** The approximate number of entries that a stream keeps; older ones are trimmed, read or not. Undefined: all. */
  readonly maxlen?: number;
  /** How long event ids are kept for deduplication; 0: not at all. */
  readonly dedupeMs?: number;
  /** The prefix of the marker keys. */
  readonly prefix?: string;
  /** How many replicas must have an event before it counts as delivered. */
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

/** Far longer than a relay needs to restart after a crash; 90 MB at 1,000 events a second. */
const DEDUPE_MS = 600_000;
const PREFIX = "outbox-relay:";
/** Below the engine's publish timeout of 5 s, so that a timeout is reported with its reason. */
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
  check(hosts.length === 1, "hosts has several entries, but a cluster is not supported: name one");
  check(!/[{}]/.test(prefix), "prefix must not contain braces: they determine a key's hash slot in a cluster");
  check(prefix.isWellFormed() && prefix.length <= 200, "prefix must be at most 200 characters of valid Unicode");
  check(options.username === undefined || options.password !== undefined, "username is set but password is not");
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

/** `host:port`. */
export function describeHosts({ hosts }: RedisSettings): string {
  return hosts.map(({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`).join(",");
}

function addressOf(written: string): RedisAddress {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(written) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65_535) throw invalid("an entry of hosts is not of the form host:port");
  return { host, port };
}

function numberOf(option: string, value: number | undefined, min: number, max: number, fallback: number): number {
  if (value === undefined) return fallback;
  check(
    Number.isInteger(value) && value >= min && value <= max,
    `${option} must be a whole number from ${min} to ${max}`,
  );
  return value;
}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw invalid(what);
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `Redis: ${what}.`);
}
