import type { Cluster, Redis } from "ioredis";
import { RelayError } from "../../core/errors.ts";

/** Where an outbox is. Exactly one of `url` and `client`. */
export interface RedisPlace {
  /** `redis://` or, with TLS, `rediss://`. */
  readonly url?: string;
  /** An ioredis client, also of a cluster. It stays the caller's. */
  readonly client?: Redis | Cluster;
  /** Of the outbox: all of its keys begin with `{outbox:NAME}`. */
  readonly name: string;
}

export interface RedisSourceOptions extends RedisPlace {
  /** How the source is called in the names of pipelines; the outbox's name unless told otherwise. */
  readonly sourceName?: string;
  /**
   * How long the id of a delivered event is remembered, so that writing it again changes nothing. Each costs about 155
   * bytes.
   */
  readonly deliveredIdsMs?: number;
  /** For every command; below half the lease, so that a late write finds its lane taken over, not idle. */
  readonly commandTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
}

export interface RedisSettings {
  readonly place: RedisPlace;
  readonly sourceName: string;
  readonly deliveredIdsMs: number;
  readonly commandTimeoutMs: number;
  readonly connectTimeoutMs: number;
}

const DEFAULTS = { deliveredIdsMs: 3_600_000, commandTimeoutMs: 4_000, connectTimeoutMs: 5_000 };
/** Longer names would be repeated in every key. */
const NAME_LENGTH_MAX = 100;

export function redisSettings(options: RedisSourceOptions): RedisSettings {
  checkPlace(options);
  const settings = {
    place: options,
    sourceName: options.sourceName ?? options.name,
    deliveredIdsMs: options.deliveredIdsMs ?? DEFAULTS.deliveredIdsMs,
    commandTimeoutMs: options.commandTimeoutMs ?? DEFAULTS.commandTimeoutMs,
    connectTimeoutMs: options.connectTimeoutMs ?? DEFAULTS.connectTimeoutMs,
  };
  checkMs("deliveredIdsMs", settings.deliveredIdsMs, 0, 366 * 86_400_000);
  checkMs("commandTimeoutMs", settings.commandTimeoutMs, 1, 600_000);
  checkMs("connectTimeoutMs", settings.connectTimeoutMs, 1, 600_000);
  return settings;
}

export function checkPlace({ client, name, url }: RedisPlace): void {
  if (name === "" || name.length > NAME_LENGTH_MAX || /[{}\s]/.test(name)) {
    throw invalid(
      `name is ${JSON.stringify(name)}; it needs 1 to ${NAME_LENGTH_MAX} characters, no space and no brace`,
    );
  }
  if ((url === undefined) === (client === undefined)) throw invalid("url or client is needed, and not both");
  if (url !== undefined && !/^rediss?:\/\/./.test(url)) throw invalid("url does not begin with redis:// or rediss://");
}

/** The braces make a cluster keep all keys of the outbox on one node. */
export function baseKey({ name }: RedisPlace): string {
  return `{outbox:${name}}`;
}

function checkMs(name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw invalid(`${name} is ${value}; it must be a whole number from ${min} to ${max}`);
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `The Redis outbox's ${what}.`);
}
