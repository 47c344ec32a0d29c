import type { RedisTls } from "../../publishers/redis/redis-config.ts";
import { publishMsOf } from "../lease-timing.ts";
import type { Settings } from "../settings.ts";
import type { Address } from "./address.ts";
import type { WrittenDestination } from "./destination-scheme.ts";

/** A Redis server and how to log in there. */
interface RedisServer {
  readonly hosts: readonly string[];
  readonly username?: string;
  readonly password?: string;
  readonly database: number;
  readonly tls?: RedisTls;
  readonly connectTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

/** What address and settings say of the server; null when `problems` say what is wrong. */
export function redisServer(address: Address, written: WrittenDestination): RedisServer | null {
  const { problems, setting, settings } = written;
  const complaints = problems.length;
  if (!/^\d{0,9}$/.test(address.path)) problems.push(`${setting} ends with no number of a database: write /0`);
  // A user without a name is how addresses of Redis write the default user.
  const username = address.username || settings.REDIS_USERNAME;
  const password = address.password ?? settings.REDIS_PASSWORD;
  if (username !== undefined && password === undefined) {
    problems.push(`${setting} has a user and no password: add it, or set REDIS_PASSWORD`);
  }
  const tls = tlsOf(address.scheme.endsWith("rediss"), settings, written);
  if (problems.length > complaints) return null;
  const publishMs = publishMsOf(settings);
  return {
    hosts: address.hosts,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    database: Number(address.path),
    ...(tls === null ? {} : { tls }),
    // Silence must be told with its reason before the engine gives the publish up.
    connectTimeoutMs: Math.round(publishMs * 0.6),
    requestTimeoutMs: Math.round(publishMs * 0.8),
  };
}

export function redisWarnings({ hosts, password, tls }: RedisServer): string[] {
  const isLocal = hosts.every((host) => /^(?:localhost|127\.[\d.]+|\[::1\]):/.test(host));
  if (password === undefined || tls !== undefined || isLocal) return [];
  return ["The password goes to Redis in the clear: write rediss instead of redis"];
}

function tlsOf(isWanted: boolean, settings: Settings, { problems, setting }: WrittenDestination): RedisTls | null {
  const { REDIS_TLS_CA: ca, REDIS_TLS_CERT: cert, REDIS_TLS_KEY: key } = settings;
  if ((cert === undefined) !== (key === undefined)) {
    const [there, missing] =
      cert === undefined ? ["REDIS_TLS_KEY", "REDIS_TLS_CERT"] : ["REDIS_TLS_CERT", "REDIS_TLS_KEY"];
    problems.push(`${there} is set and ${missing} is not: a certificate and its key only work together`);
  }
  const given = Object.entries({ ca, cert, key }).filter(([, value]) => value !== undefined);
  if (isWanted) return Object.fromEntries(given);
  if (given.length > 0) {
    problems.push(`${setting} is without TLS and there are certificates for it: write rediss instead of redis`);
  }
  return null;
}
