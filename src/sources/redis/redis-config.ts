import type { Cluster, Redis } from "ioredis";
import { RelayError } from "../../core/errors.ts";

/** Which outbox to use. Set exactly one of `url` and `client`. */
export interface RedisPlace {
  /** `redis://` or, with TLS, `rediss://`. */
  readonly url?: string;
  /** An ioredis client, also of a cluster. The caller closes it. */
  readonly client?: Redis | Cluster;
  /** The outbox's name: all of its keys begin with `{outbox:NAME}`. */
  readonly name: string;
}

/** Options of `redisSource`. */
export interface RedisSourceOptions extends RedisPlace {
  /** The source's name in the names of pipelines. Default: the outbox's name. */
  readonly sourceName?: string;
  /**
   * How long the id of a delivered event is kept, so that appending it again changes nothing. Each id costs about 155
   * bytes.
   */
  readonly deliveredIdsMs?: number;
  /** For every command. Keep it below half the lease, so that a late write finds its lane taken over, not idle. */
  readonly commandTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
}

/** The options with all defaults applied. */
export interface RedisSettings {
  readonly place: RedisPlace;
  readonly sourceName: string;
  readonly deliveredIdsMs: number;
  readonly commandTimeoutMs: number;
  readonly connectTimeoutMs: number;
}

const DEFAULTS = { deliveredIdsMs: 3_600_000, commandTimeoutMs: 4_000, connectTimeoutMs: 5_000 };
/** The name is repeated in every key. */
const NAME_LENGTH_MAX = 100;

/** Applies defaults and checks ranges. Throws CONFIG_INVALID. */
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

/** Throws CONFIG_INVALID unless the outbox has a usable name and exactly one of `url` and `client`. */
export function checkPlace({ client, name, url }: RedisPlace): void {
  if (name === "" || name.length > NAME_LENGTH_MAX || /[{}\s]/.test(name)) {
    throw invalid(
      `name is ${JSON.stringify(name)}; it needs 1 to ${NAME_LENGTH_MAX} characters, no space and no brace`,
    );
  }
  if ((url === undefined) === (client === undefined)) throw invalid("needs exactly one of url and client");
  if (url !== undefined && !/^rediss?:\/\/./.test(url)) throw invalid("url must begin with redis:// or rediss://");
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
  return new RelayError("CONFIG_INVALID", `Redis outbox: ${what}.`);
}
