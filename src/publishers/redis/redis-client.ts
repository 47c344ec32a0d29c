import type { Redis } from "ioredis";
import { RelayError } from "../../core/errors.ts";
import type { RedisSettings } from "./redis-config.ts";
import { type Argument, withSource } from "./redis-script.ts";

type RedisClient = Pick<typeof import("ioredis"), "Redis">;

const INSTALL = "npm install ioredis@6.0.0";

let loading: Promise<RedisClient> | undefined;

/** The client is an optional peer dependency: without it the error says what to install. */
export function loadRedis(): Promise<RedisClient> {
  loading ??= import("ioredis").catch((cause: unknown) => {
    throw new RelayError("CONFIG_INVALID", `the Redis client is missing, install it: ${INSTALL}.`, { cause });
  });
  return loading;
}

/** A connection that one publish uses at a time. Once it breaks it is spent: the next publish makes another. */
export class RedisLink {
  readonly #client: Redis;
  #opening: Promise<void> | null = null;
  #isSpent = false;
  /** What the connection said when it broke: the commands that were on it only know that it did. */
  #lastError: Error | null = null;

  constructor(library: RedisClient, settings: RedisSettings) {
    this.#client = new library.Redis({ ...settings.hosts[0]!, ...clientOptions(settings), db: settings.database });
    this.#client.on("error", (error: Error) => {
      this.#lastError = error;
    });
    this.#client.on("end", () => {
      this.#isSpent = true;
    });
  }

  get isSpent(): boolean {
    return this.#isSpent;
  }

  /** Resolves when commands can be sent. */
  async open(): Promise<void> {
    this.#opening ??= this.#client.connect();
    try {
      await this.#opening;
    } catch (error) {
      this.destroy();
      throw this.explained(error);
    }
  }

  /** Runs the script with the arguments of EVALSHA, and sends it along where the server does not know it. */
  async runScript(args: Argument[]): Promise<unknown> {
    try {
      return await this.#client.call("EVALSHA", args);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return await this.#client.call("EVAL", withSource(args));
    }
  }

  /** How many replicas have all that this connection wrote; waits for `count` of them until the time is over. */
  async awaitReplicas(count: number, timeoutMs: number): Promise<number> {
    return Number(await this.#client.call("WAIT", [count, timeoutMs]));
  }

  /** The error together with what the connection said of itself. */
  explained(error: unknown): unknown {
    return this.#lastError === null ? error : new AggregateError([this.#lastError, error], this.#lastError.message);
  }

  /** At once: nothing that was not sent yet is sent any more. */
  destroy(): void {
    this.#isSpent = true;
    // The client would end it in good order, and send what is waiting.
    this.#client.stream?.destroy();
    this.#client.disconnect();
  }
}

function clientOptions({ connectTimeoutMs, password, tls, username }: RedisSettings) {
  return {
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
    ...(tls === null ? {} : { tls }),
  };
}
