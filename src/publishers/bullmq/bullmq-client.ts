import type { BulkJobOptions, Job, Queue } from "bullmq";
import type { ChainableCommander, Redis } from "ioredis";
import { optionalClient } from "../../core/optional-client.ts";
import { RedisLink } from "../../core/redis-link.ts";
import type { BullmqSettings } from "./bullmq-config.ts";
import type { jobOf } from "./bullmq-job.ts";

interface BullmqLibrary {
  readonly Queue: typeof Queue;
  readonly Job: typeof Job;
  readonly Redis: typeof Redis;
}

/** Queues whose objects are kept; a relay with more topics makes some anew. */
const QUEUES_MAX = 200;

export const loadBullmq: () => Promise<BullmqLibrary> = optionalClient(
  "BullMQ or its client",
  "bullmq@6 ioredis@6",
  () =>
    Promise.all([import("bullmq"), import("ioredis")]).then(([{ Job, Queue }, { Redis }]) => ({ Job, Queue, Redis })),
);

/** Until version 6 a queue has the client itself. */
interface QueueOfVersion5 {
  readonly client: Promise<{ multi(): unknown }>;
}

function isVersion5(queue: Queue | QueueOfVersion5): queue is QueueOfVersion5 {
  return !("backend" in queue);
}

/** BullMQ's own form of a transaction of the client. */
export type Transaction = ChainableCommander;

interface NewJob {
  readonly id: string;
  readonly name: string;
  readonly data: object;
  readonly opts: BulkJobOptions;
}

/** A connection to the Redis server of the queues. */
export class BullmqLink extends RedisLink {
  readonly #library: BullmqLibrary;
  readonly #settings: BullmqSettings;
  readonly #queues = new Map<string, Queue>();

  constructor(library: BullmqLibrary, settings: BullmqSettings) {
    super(library, settings);
    this.#library = library;
    this.#settings = settings;
  }

  /** Adds jobs in order. An error may concern only some of them: the others may be added. */
  async addBulk(name: string, jobs: readonly ReturnType<typeof jobOf>[]): Promise<void> {
    await this.#queue(name).addBulk([...jobs]);
  }

  /**
   * Watches keys and returns their values, followed by those of `others`. Redis drops this link's next transaction if a
   * watched key changes.
   */
  async watch(watched: readonly string[], others: readonly string[]): Promise<readonly (string | null)[]> {
    const [watching, read] =
      (await this.client
        .pipeline()
        .watch(...watched)
        .mget(...watched, ...others)
        .exec()) ?? [];
    const error = watching?.[0] ?? read?.[0];
    if (error) throw error;
    return (read?.[1] ?? []) as (string | null)[];
  }

  /** Begins a transaction; call it after `watch`. Its commands take effect together or not at all. */
  async transaction(queueName: string): Promise<Transaction> {
    const queue = this.#queue(queueName);
    // The queue's form of the client, not the bare one: it knows how BullMQ calls its scripts.
    const client = await (isVersion5(queue) ? queue : queue.backend).client;
    return client.multi() as unknown as Transaction;
  }

  /** Adds jobs to the transaction in order, each by the call that BullMQ's own `addBulk` makes. */
  async addToTransaction(transaction: Transaction, queueName: string, jobs: readonly NewJob[]): Promise<void> {
    const queue = this.#queue(queueName);
    const { Job } = this.#library;
    await Promise.all(
      jobs.map(({ data, id, name, opts }) => new Job(queue, name, data, opts, id).addJob(transaction as never)),
    );
  }

  /** The Redis key of one of the queue's lists or sets. */
  keyOf(queueName: string, part: "wait" | "paused" | "delayed"): string {
    return this.#queue(queueName).toKey(part);
  }

  async jobCounts(queueName: string): Promise<Record<string, number>> {
    return await this.#queue(queueName).getJobCounts("waiting", "active", "delayed", "failed");
  }

  /** Whether the job exists in any state. Removes a job that a failed script left incomplete. */
  async hasJob(queueName: string, jobId: string): Promise<boolean> {
    const queue = this.#queue(queueName);
    if ((await queue.getJobState(jobId)) !== "unknown") return true;
    await queue.remove(jobId);
    return false;
  }

  #queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      if (this.#queues.size >= QUEUES_MAX) this.#queues.clear();
      const { Queue } = this.#library;
      queue = new Queue(name, {
        connection: this.client,
        prefix: this.#settings.prefix,
        skipVersionCheck: true,
        // Keep the queue settings that workers have written.
        skipMetasUpdate: true,
      });
      queue.on("error", () => {});
      this.#queues.set(name, queue);
    }
    return queue;
  }
}
