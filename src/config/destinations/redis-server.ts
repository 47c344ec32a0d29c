import type { RedisTls } from "../../publishers/redis/redis-config.ts";
import { publishMsOf } from "../lease-timing.ts";
import type { Settings } from "../settings/settings.ts";
import type { Address } from "./address.ts";
import type { WrittenDestination } from "./destination-scheme.ts";

/** A Redis server, with login and timeouts. */
interface RedisServer {
  readonly hosts: readonly string[];
  readonly username?: string;
  readonly password?: string;
  readonly database: number;
  readonly tls?: RedisTls;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

/** The server that address and settings describe; null when `problems` say what is wrong. */
export function redisServer(address: Address, written: WrittenDestination): RedisServer | null {
  const { problems, setting, settings } = written;
  const problemsBefore = problems.length;
  if (!/^\d{0,9}$/.test(address.path)) problems.push(`${setting} does not end with a database number: write /0`);
  // In Redis addresses, an empty user means the default user.
  const username = address.username || settings.REDIS_USERNAME;
  const password = address.password ?? settings.REDIS_PASSWORD;
  if (username !== undefined && password === undefined) {
    problems.push(`${setting} has a user but no password: add it, or set REDIS_PASSWORD`);
  }
  const tls = tlsOf(address.scheme.endsWith("rediss"), settings, written);
  if (problems.length > problemsBefore) return null;
  const publishMs = publishMsOf(settings);
  return {
    hosts: address.hosts,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    database: Number(address.path),
    ...(tls === null ? {} : { tls }),
    // The client must time out, with its reason, before the engine gives up the publish.
    connectTimeoutMs: Math.round(publishMs * 0.6),
    requestTimeoutMs: Math.round(publishMs * 0.8),
  };
}

/** Warns of a password that travels unencrypted. */
export function redisWarnings({ hosts, password, tls }: RedisServer): string[] {
  const isLocal = hosts.every((host) => /^(?:localhost|127\.[\d.]+|\[::1\]):/.test(host));
  if (password === undefined || tls !== undefined || isLocal) return [];
  return ["The password goes to Redis unencrypted: write rediss instead of redis"];
}

function tlsOf(isWanted: boolean, settings: Settings, { problems, setting }: WrittenDestination): RedisTls | null {
  const { REDIS_TLS_CA: ca, REDIS_TLS_CERT: cert, REDIS_TLS_KEY: key } = settings;
  if ((cert === undefined) !== (key === undefined)) {
    const [there, missing] =
      cert === undefined ? ["REDIS_TLS_KEY", "REDIS_TLS_CERT"] : ["REDIS_TLS_CERT", "REDIS_TLS_KEY"];
    problems.push(`${there} is set but ${missing} is not: a certificate and its key only work together`);
  }
  const given = Object.entries({ ca, cert, key }).filter(([, value]) => value !== undefined);
  if (isWanted) return Object.fromEntries(given);
  if (given.length > 0) {
    problems.push(`${setting} has no TLS, but certificates are set: write rediss instead of redis`);
  }
  return null;
}
