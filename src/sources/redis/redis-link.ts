import type { Cluster, Redis } from "ioredis";
import { type ErrorCode, isRelayError, RelayError, reasonOf } from "../../core/errors.ts";
import { optionalClient } from "../../core/optional-client.ts";
import { baseKey, type RedisSettings } from "./redis-config.ts";
import type { Script } from "./redis-script.ts";

/** A value passed to a script. */
export type Argument = string | number | Buffer;
type Client = Redis | Cluster;

export const loadRedis = optionalClient("the Redis client", "ioredis@6", () => import("ioredis"));

/**
 * Three connections: the heartbeat must not wait behind work, and a settle must not wait behind a page of events. The
 * link connects at the first call. It never sends a command twice: only the engine knows when a retry is safe.
 */
export class RedisLink {
  readonly base: string;
  readonly #settings: RedisSettings;
  readonly #clients = new Map<Line, Promise<Client>>();
  /** A connection's last error. The commands that failed with it only say that the connection closed. */
  readonly #lastErrors = new WeakMap<Client, Error>();
  #isClosed = false;

  constructor(settings: RedisSettings) {
    this.base = baseKey(settings.place);
    this.#settings = settings;
  }

  /** Runs a script. Replies contain Buffers instead of strings. */
  async run(line: Line, doing: string, { sha, text }: Script, args: readonly Argument[]): Promise<unknown> {
    return await this.#ask(line, doing, async (client) => {
      try {
        return await client.callBuffer("EVALSHA", sha, 1, this.base, ...args);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return await client.callBuffer("EVAL", text, 1, this.base, ...args);
      }
    });
  }

  /** Payloads in the order of the ids; null for events that are gone. */
  async payloads(ids: readonly string[]): Promise<readonly (Buffer | null)[]> {
    if (ids.length === 0) return [];
    const key = `${this.base}:payloads`;
    const reply = await this.#ask("reads", "reading payloads", (client) => client.callBuffer("HMGET", key, ...ids));
    return reply as (Buffer | null)[];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const clients = await Promise.allSettled(this.#clients.values());
    for (const opened of clients) if (opened.status === "fulfilled") opened.value.disconnect();
  }

  async #ask(line: Line, doing: string, send: (client: Client) => Promise<unknown>): Promise<unknown> {
    if (this.#isClosed) throw new RelayError("DATABASE_UNREACHABLE", `${doing} failed: the source was closed.`);
    const client = await this.#client(line);
    try {
      return await send(client);
    } catch (error) {
      // Give up a connection that does not respond: a command still on its way must not take effect much later.
      if (error instanceof Error && error.message === "Command timed out") client.disconnect(true);
      throw translateError(error, doing, this.#lastErrors.get(client));
    }
  }

  #client(line: Line): Promise<Client> {
    const known = this.#clients.get(line);
    if (known !== undefined) return known;
    const opening = this.#open(line).then((client) => {
      client.on("error", (error: Error) => void this.#lastErrors.set(client, error));
      // A new connection must not report the error of an old one.
      client.on("ready", () => void this.#lastErrors.delete(client));
      return client;
    });
    this.#clients.set(line, opening);
    opening.catch(() => this.#clients.delete(line));
    return opening;
  }

  async #open(line: Line): Promise<Client> {
    const { client, url } = this.#settings.place;
    const options = { ...connectionOptions(this.#settings), connectionName: `outbox-relay-${line}` };
    if (client === undefined) return new (await loadRedis()).Redis(url ?? "", options);
    return isCluster(client) ? duplicateCluster(client, this.#settings) : client.duplicate(options);
  }
}

/** The purpose of a call, one connection each: heartbeats, reading events, writing progress. */
export type Line = "heartbeat" | "reads" | "writes";

const RECONNECT_MS_MAX = 1_000;

function connectionOptions({ commandTimeoutMs, connectTimeoutMs }: RedisSettings) {
  return {
    commandTimeout: commandTimeoutMs,
    connectTimeout: connectTimeoutMs,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    retryStrategy: reconnectMs,
    keyPrefix: "",
    replyMapping: "legacy" as const,
  };
}

function reconnectMs(times: number): number {
  return Math.min(RECONNECT_MS_MAX, 50 * times);
}

/** A command whose connection broke may have run. A delay of 0 tells the client not to send it again. */
function duplicateCluster(cluster: Cluster, settings: RedisSettings): Cluster {
  const { retryStrategy, ...own } = connectionOptions(settings);
  const redisOptions = { ...cluster.options.redisOptions, ...own };
  return cluster.duplicate([], {
    redisOptions,
    clusterRetryStrategy: retryStrategy,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    keyPrefix: "",
  });
}

function isCluster(client: Client): client is Cluster {
  return client.isCluster;
}

/** Host, port and database, to distinguish outboxes; never a password. */
export function addressOf({ client, url }: RedisSettings["place"]): string {
  if (url !== undefined) {
    const { host, pathname } = new URL(url);
    return `${host}${pathname}`;
  }
  if (client === undefined) return "";
  if (isCluster(client))
    return `cluster ${client.nodes("all").map(({ options }) => `${options.host}:${options.port}`)}`;
  const { db, host, path, port } = client.options;
  return `${path ?? `${host}:${port}`}/${db ?? 0}`;
}

/** Error replies of a server that did not run the command. */
const BY_PREFIX: Readonly<Record<string, ErrorCode>> = {
  LOADING: "DATABASE_BUSY",
  BUSY: "DATABASE_BUSY",
  TRYAGAIN: "DATABASE_BUSY",
  CLUSTERDOWN: "DATABASE_BUSY",
  MASTERDOWN: "DATABASE_BUSY",
  NOREPLICAS: "DATABASE_BUSY",
  NOPERM: "GRANT_MISSING",
};

/** The one place where client errors become errors of the relay. `broken` is the connection's last error. */
export function translateError(error: unknown, doing: string, broken?: Error): RelayError {
  if (isRelayError(error)) return error;
  const source = isAnswer(error) || broken === undefined ? error : broken;
  return new RelayError(codeOf(source), `${doing} failed: ${reasonOf(source, 500)}`, { cause: error });
}

/** The server does not know the script's digest: send the whole text. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/**
 * Which failures are certain. A server that replies with an error did not run the script's writes, since a script
 * cannot fail after its first write. A refused password runs nothing at all. Everything else may have taken effect.
 */
function codeOf(error: unknown): ErrorCode {
  if (!isAnswer(error)) return "DATABASE_UNREACHABLE";
  return BY_PREFIX[/^[A-Z]+/.exec(error.message)?.[0] ?? ""] ?? "DATABASE_REFUSED";
}

function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}
