import type { Queue } from "bullmq";
import type { Redis } from "ioredis";
import { RelayError } from "../../core/errors.ts";
import type { BullmqSettings } from "./bullmq-config.ts";
import type { jobOf } from "./bullmq-job.ts";

interface BullmqLibrary {
  readonly Queue: typeof Queue;
  readonly Redis: typeof Redis;
}

const INSTALL = "npm install bullmq@6.7.0 ioredis@6.0.0";
/** Queues whose objects are kept; a relay with more topics makes some anew. */
const QUEUES_MAX = 200;

let loading: Promise<BullmqLibrary> | undefined;

/** The clients are optional peer dependencies: without them the error says what to install. */
export function loadBullmq(): Promise<BullmqLibrary> {
  loading ??= Promise.all([import("bullmq"), import("ioredis")]).then(
    ([{ Queue }, { Redis }]) => ({ Queue, Redis }),
    (cause: unknown) => {
      throw new RelayError("CONFIG_INVALID", `BullMQ or its client is missing, install them: ${INSTALL}.`, { cause });
    },
  );
  return loading;
}

/** A connection that one publish uses at a time. Once it breaks it is spent: the next publish makes another. */
export class BullmqLink {
  readonly #library: BullmqLibrary;
  readonly #settings: BullmqSettings;
  readonly #client: Redis;
  readonly #queues = new Map<string, Queue>();
  #opening: Promise<void> | null = null;
  #isSpent = false;
  /** What the connection said when it broke: the commands that were on it only know that it did. */
  #lastError: Error | null = null;

  constructor(library: BullmqLibrary, settings: BullmqSettings) {
    this.#library = library;
    this.#settings = settings;
    this.#client = new library.Redis(clientOptions(settings));
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

  /** Resolves when jobs can be added; else rejects with what the connection said. */
  async open(): Promise<void> {
    this.#opening ??= this.#client.connect();
    try {
      await this.#opening;
    } catch (error) {
      this.destroy();
      throw this.explained(error);
    }
  }

  /** In their order. An error may mean some of them: the others may be there. */
  async addBulk(name: string, jobs: readonly ReturnType<typeof jobOf>[]): Promise<void> {
    await this.#queue(name).addBulk([...jobs]);
  }

  explained(error: unknown): unknown {
    return this.#lastError ?? error;
  }

  /** At once: nothing that was not sent yet is sent any more. */
  destroy(): void {
    this.#isSpent = true;
    this.#client.stream?.destroy();
    this.#client.disconnect();
  }

  #queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      if (this.#queues.size >= QUEUES_MAX) this.#queues.clear();
      const { Queue } = this.#library;
      queue = new Queue(name, {
        connection: this.#client,
        prefix: this.#settings.prefix,
        skipVersionCheck: true,
        // What workers set for the queue stays as it is.
        skipMetasUpdate: true,
      });
      queue.on("error", () => {});
      this.#queues.set(name, queue);
    }
    return queue;
  }
}

function clientOptions({ connectTimeoutMs, database, host, password, port, tls, username }: BullmqSettings) {
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
    ...(tls === null ? {} : { tls }),
  };
}
