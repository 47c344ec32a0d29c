import type { Redis, RedisOptions } from "ioredis";
import { withinTime } from "./clock.ts";

/** Where one server is, and how to log in to it. */
interface RedisLogin {
  readonly host: string;
  readonly port: number;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  readonly tls: RedisOptions["tls"] | null;
  readonly connectTimeoutMs: number;
}

/** A connection that one publish uses at a time. Once it breaks it is spent: the next publish makes another. */
export class RedisLink {
  readonly client: Redis;
  readonly #hasPassword: boolean;
  #opening: Promise<void> | null = null;
  #isSpent = false;
  /** What the connection said when it broke: the commands that were on it only know that it did. */
  #lastError: Error | null = null;

  constructor(library: { readonly Redis: typeof Redis }, login: RedisLogin) {
    this.#hasPassword = login.password !== null;
    this.client = new library.Redis(clientOptions(login));
    this.client.on("error", (error: Error) => {
      this.#lastError = error;
    });
    this.client.on("end", () => {
      this.#isSpent = true;
    });
  }

  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Resolves when commands can be sent; else rejects with what the connection said. */
  async open(): Promise<void> {
    this.#opening ??= this.#connect();
    try {
      await this.#opening;
    } catch (error) {
      this.destroy();
      throw this.explained(error);
    }
  }

  async #connect(): Promise<void> {
    await this.client.connect();
    if (!this.#hasPassword) return;
    // ioredis 5 does not wait for the answer to the login. That answer comes before the one to the next command.
    await this.client.ping().catch((error: unknown) => {
      // A user without the right to ping is logged in all the same.
      if (!(error instanceof Error && error.message.startsWith("NOPERM"))) throw error;
    });
    if (this.#lastError !== null) throw this.#lastError;
  }

  /** The error together with what the connection said of itself. */
  explained(error: unknown): unknown {
    return this.#lastError === null ? error : new AggregateError([this.#lastError, error], this.#lastError.message);
  }

  /** At once: nothing that was not sent yet is sent any more. */
  destroy(): void {
    this.#isSpent = true;
    // The client would end it in good order, and send what is waiting.
    this.client.stream?.destroy();
    this.client.disconnect();
  }
}

function clientOptions({ connectTimeoutMs, database, host, password, port, tls, username }: RedisLogin) {
  return {
    host,
    port,
    db: database,
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    // The engine retries, and only it knows what may be sent again.
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    // A server that is still loading says so itself.
    enableReadyCheck: false,
    disableClientInfo: true,
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
    ...(tls == null ? {} : { tls }),
  };
}

interface Examined {
  /** For people. */
  readonly where: string;
  readonly requestTimeoutMs: number;
  readonly reasonOf: (error: unknown) => string;
}

/** Logs in over a link of its own, and asks the server whether it takes writes and keeps them. */
export async function examineRedisServer(
  link: RedisLink,
  { where, requestTimeoutMs, reasonOf }: Examined,
  signal: AbortSignal,
) {
  const late = () => new Error(`no answer within ${requestTimeoutMs} ms`);
  try {
    const info = await withinTime(openAndAsk(link), requestTimeoutMs, signal, late);
    return redisFaults(info).map(({ reason, severity }) => ({ severity, reason: `${where}: ${reason}` }));
  } catch (error) {
    return [{ severity: "error" as const, reason: reasonOf(link.explained(error)) }];
  } finally {
    link.destroy();
  }
}

async function openAndAsk(link: RedisLink): Promise<string> {
  await link.open();
  try {
    return await link.client.info("everything");
  } catch (error) {
    // A user that may write and not ask is no fault: then only a publish tells.
    if (error instanceof Error && error.message.startsWith("NOPERM")) return "";
    throw error;
  }
}

/** The value of a line of INFO, which managed servers answer too; undefined where the server does not report it. */
export function infoOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

interface RedisFault {
  readonly severity: "error" | "warning";
  readonly reason: string;
}

/** Why a server with this INFO takes no writes, or loses data. */
function redisFaults(info: string): readonly RedisFault[] {
  const policy = infoOf(info, "maxmemory_policy") ?? "noeviction";
  const way = "set maxmemory-policy noeviction";
  const faults: readonly (RedisFault & { readonly isThere: boolean })[] = [
    {
      isThere: infoOf(info, "role") === "slave",
      severity: "error",
      reason: "this is a replica: write the address of the primary",
    },
    {
      isThere: infoOf(info, "cluster_enabled") === "1",
      severity: "error",
      reason: "this is a node of a cluster, which is not supported",
    },
    {
      isThere: policy.startsWith("allkeys-"),
      severity: "error",
      reason: `maxmemory-policy is ${policy}: Redis deletes delivered events when its memory is full; ${way}`,
    },
    {
      isThere: policy.startsWith("volatile-"),
      severity: "warning",
      reason: `maxmemory-policy is ${policy}: Redis deletes keys with an expiry when its memory is full; ${way}`,
    },
  ];
  return faults.filter(({ isThere }) => isThere).map(({ reason, severity }) => ({ severity, reason }));
}
