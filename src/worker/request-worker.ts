import type { Job, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import { type RequestReference, streamOf } from "../requests/request-names.ts";
import { type JobReturn, processJob } from "./request-job.ts";
import { Requeue, retryDelayMs } from "./requeue.ts";
import { connectLocks, connectQueue, loadWorkerLibrary, type WorkerLibrary } from "./worker-clients.ts";
import { JobLogger } from "./worker-log.ts";
import { type FoundRequest, type RequestWorkerOptions, type WorkerSettings, workerSettings } from "./worker-options.ts";

/** A worker that executes requests until it is closed. */
export interface RequestWorker {
  /**
   * Resolves once it accepts jobs; Redis and the log may still be unreachable. Rejects when the clients are not
   * installed.
   */
  run(): Promise<void>;
  /**
   * Accepts no new jobs, waits for the running ones and releases their locks. After the grace period their signals
   * abort, and jobs whose outcome could not be recorded are delivered to another worker.
   */
  close(graceMs?: number): Promise<void>;
}

/** Executes the requests of one bounded context, each requested by an event of the log, and records the outcomes. */
export function requestWorker<Request = FoundRequest>(options: RequestWorkerOptions<Request>): RequestWorker {
  const runtime = new WorkerRuntime(workerSettings(options));
  return { run: () => runtime.run(), close: (graceMs = GRACE_MS) => runtime.close(graceMs) };
}

const GRACE_MS = 30_000;
/** How long aborted jobs may take to end, and BullMQ to close its connections. */
const ENDING_MS = 5_000;
/**
 * After this many dead workers a job fails instead of being delivered again: the request itself may kill the process.
 */
const STALLED_MAX = 100;
/** The delay between two attempts to reach a Redis that does not answer. */
const AGAIN_MS = 1_000;

interface Running {
  readonly library: WorkerLibrary;
  readonly worker: Worker<unknown, JobReturn>;
  readonly clients: { readonly queue: Redis; readonly locks: Redis };
}

class WorkerRuntime {
  readonly #settings: WorkerSettings;
  /** Aborts the running jobs. */
  readonly #ending = new AbortController();
  /** Stops all reconnecting. */
  readonly #over = new AbortController();
  readonly #active = new Set<Promise<unknown>>();
  readonly #workerLogger: JobLogger;
  #starting: Promise<Running> | null = null;
  #closing: Promise<void> | null = null;

  constructor(settings: WorkerSettings) {
    this.#settings = settings;
    this.#workerLogger = new JobLogger(settings.onLog, { namespace: settings.context.namespace });
  }

  async run(): Promise<void> {
    if (this.#closing !== null)
      throw new RelayError("CONFIG_INVALID", "Worker: run() was called after close(); create another worker.");
    this.#starting ??= this.#start();
    await this.#starting;
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #start(): Promise<Running> {
    const { concurrency, lockMs, prefix, queue: name, redis, stalledMs } = this.#settings;
    const library = await loadWorkerLibrary();
    const over = this.#over.signal;
    const clients = { queue: connectQueue(library, redis, over), locks: connectLocks(library, redis, over, lockMs) };
    for (const client of Object.values(clients)) client.on("error", (error) => this.#logConnectionError(error));
    const worker = new library.Worker<unknown, JobReturn>(name, (job, token) => this.#process(job, token), {
      connection: clients.queue,
      autorun: false,
      ...{ concurrency, prefix, lockDuration: stalledMs, stalledInterval: stalledMs },
      maxStalledCount: STALLED_MAX,
      runRetryDelay: AGAIN_MS,
    });
    worker.on("error", (error) => this.#logConnectionError(error));
    // Our own errors are logged where they happen, with all ids; the rest are BullMQ's, such as a job that stalled too
    // often.
    worker.on("failed", (job, error) => {
      if (!isRelayError(error)) this.#loggerOf(job).log("broken", { reason: reasonOf(error) });
    });
    worker.run().catch((error: unknown) => this.#logConnectionError(error));
    return { library, worker, clients };
  }

  #process(job: Job<unknown, JobReturn>, token: string | undefined): Promise<JobReturn> {
    const work = this.#work(job, token);
    this.#active.add(work);
    const done = () => this.#active.delete(work);
    work.then(done, done);
    return work;
  }

  async #work(job: Job<unknown, JobReturn>, token: string | undefined): Promise<JobReturn> {
    const { library, clients } = await this.#starting!;
    const settings = this.#settings;
    const logger = this.#loggerOf(job);
    const { clock, context, lockMs, random } = settings;
    try {
      if (this.#closing !== null) throw new Requeue("the worker is closing", 0);
      const { reference, jobId } = referenceIn(job);
      const locks = { redis: clients.locks, context, clock, random, lockMs };
      return await processJob({ settings, locks, reference, jobId, logger, ending: this.#ending.signal });
    } catch (error) {
      if (isRelayError(error) && !error.retryable) {
        logger.log("broken", { reason: reasonOf(error) });
        throw error;
      }
      const afterMs = (error instanceof Requeue ? error.afterMs : null) ?? retryDelayMs(job.attemptsStarted);
      logger.log("delayed", { reason: reasonOf(error, 500) });
      // If this fails, the job is no longer ours or Redis is down: BullMQ detects a stalled job and delivers it again.
      await job
        .moveToDelayed(clock.wallMs() + afterMs, token)
        .catch((cause: unknown) => this.#logConnectionError(cause));
      throw new library.DelayedError();
    }
  }

  async #close(graceMs: number): Promise<void> {
    const running = await this.#starting?.catch(() => null);
    if (!running) return;
    const { clients, worker } = running;
    await worker.pause(true);
    await this.#within(graceMs, Promise.allSettled(this.#active));
    this.#ending.abort(new Error("the worker stops"));
    await this.#within(ENDING_MS, Promise.allSettled(this.#active));
    const isAway = clients.queue.status !== "ready";
    const isClosed = await this.#within(ENDING_MS, worker.close(isAway || this.#active.size > 0));
    this.#over.abort();
    // BullMQ waits for an "end" event that a client between two connections never emits.
    if (!isClosed) void worker.backend.blockingClient?.then((client) => client.emit("end"));
    for (const client of Object.values(clients)) client.disconnect();
  }

  /** Whether the work ended in time. */
  async #within(ms: number, work: Promise<unknown>): Promise<boolean> {
    const over = new AbortController();
    const ended = work.then(() => true);
    const timeout = this.#settings.clock.sleep(ms, over.signal).then(() => false);
    return await Promise.race([ended, timeout]).finally(() => over.abort());
  }

  #logConnectionError(error: unknown): void {
    this.#workerLogger.log("trouble", { reason: reasonOf(error, 500) });
  }

  #loggerOf(job: Job | undefined): JobLogger {
    const { context, onLog } = this.#settings;
    const data = (job?.data ?? {}) as Partial<RequestReference>;
    const { requestId = null, tenant = null } = data;
    const stream = tenant === null || requestId === null ? null : streamOf(context, tenant, requestId);
    const jobId = job?.id ?? null;
    return new JobLogger(onLog, { namespace: context.namespace, tenant, requestId, jobId, eventId: jobId, stream });
  }
}

/** Throws EVENT_INVALID when the job's data is not a reference to a request. */
function referenceIn({ data, id: jobId }: Job<unknown>): { reference: RequestReference; jobId: string } {
  const { requestId, tenant } = (data ?? {}) as Partial<Record<keyof RequestReference, unknown>>;
  if (jobId !== undefined && isText(requestId) && isText(tenant)) return { reference: { requestId, tenant }, jobId };
  throw new RelayError(
    "EVENT_INVALID",
    `Job ${jobId} has no { tenant, requestId } as its data: only the request relay may add jobs to this queue.`,
  );
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
