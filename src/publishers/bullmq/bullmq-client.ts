import type { BulkJobOptions, Job, Queue } from "bullmq";
import type { ChainableCommander, Redis } from "ioredis";
import { RelayError } from "../../core/errors.ts";
import { isBulk, RecordedCall } from "./bullmq-bulk.ts";
import type { BullmqSettings } from "./bullmq-config.ts";
import type { jobOf } from "./bullmq-job.ts";

interface BullmqLibrary {
  readonly Queue: typeof Queue;
  readonly Job: typeof Job;
  readonly Redis: typeof Redis;
}

const INSTALL = "npm install bullmq@6.7.0 ioredis@6.0.0";
/** Queues whose objects are kept; a relay with more topics makes some anew. */
const QUEUES_MAX = 200;

let loading: Promise<BullmqLibrary> | undefined;

/** The clients are optional peer dependencies: without them the error says what to install. */
export function loadBullmq(): Promise<BullmqLibrary> {
  loading ??= Promise.all([import("bullmq"), import("ioredis")]).then(
    ([{ Job, Queue }, { Redis }]) => ({ Job, Queue, Redis }),
    (cause: unknown) => {
      throw new RelayError("CONFIG_INVALID", `BullMQ or its client is missing, install them: ${INSTALL}.`, { cause });
    },
  );
  return loading;
}

/** BullMQ's own form of a transaction of the client. */
export type Transaction = ChainableCommander;

interface NewJob {
  readonly id: string;
  readonly name: string;
  readonly data: object;
  readonly opts: BulkJobOptions;
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

  /** Their values now, those watched first. A transaction of this link is dropped when one of these changes before it ends. */
  async watch(watched: readonly string[], others: readonly string[]): Promise<readonly (string | null)[]> {
    const [watching, read] =
      (await this.#client
        .pipeline()
        .watch(...watched)
        .mget(...watched, ...others)
        .exec()) ?? [];
    const error = watching?.[0] ?? read?.[0];
    if (error) throw error;
    return (read?.[1] ?? []) as (string | null)[];
  }

  /** To be begun after `watch`. Whatever it is given happens in one piece, or not at all. */
  async transaction(queueName: string): Promise<Transaction> {
    // The queue's form of the client, not the bare one: it knows how BullMQ calls its scripts.
    const client = await this.#queue(queueName).backend.client;
    return client.multi() as unknown as Transaction;
  }

  /** As a part of the transaction. */
  async addJob(transaction: Transaction, queueName: string, job: NewJob): Promise<void> {
    const queue = this.#queue(queueName);
    const made = new this.#library.Job(queue, job.name, job.data, job.opts, job.id);
    await queue.backend.addJobToTransaction(transaction as never, made.asJSON(), job.id);
  }

  /** The same of several that differ in id and data alone. */
  async addAlike(transaction: Transaction, queueName: string, jobs: readonly NewJob[]): Promise<void> {
    const [first] = jobs;
    if (first !== undefined && isBulk(jobs)) {
      const call = new RecordedCall();
      await this.addJob(call as unknown as Transaction, queueName, first);
      if (call.playForAll(jobs, transaction, this.#client)) return;
    }
    for (const job of jobs) await this.addJob(transaction, queueName, job);
  }

  /** Of a list or set of the queue. */
  keyOf(queueName: string, part: "wait" | "paused" | "delayed"): string {
    return this.#queue(queueName).toKey(part);
  }

  async jobCounts(queueName: string): Promise<Record<string, number>> {
    return await this.#queue(queueName).getJobCounts("waiting", "active", "delayed", "failed");
  }

  /** Whether workers know of the job, done or not. One that was added halfway by a script that failed is removed. */
  async hasJob(queueName: string, jobId: string): Promise<boolean> {
    const queue = this.#queue(queueName);
    if ((await queue.getJobState(jobId)) !== "unknown") return true;
    await queue.remove(jobId);
    return false;
  }

  /** What somebody is to know of the whole server, by commands of this client. */
  get client(): Redis {
    return this.#client;
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
