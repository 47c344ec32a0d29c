import type { Job, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import { type RequestReference, streamOf } from "../requests/request-names.ts";
import { PutBack, patienceMs } from "./put-back.ts";
import { type JobReturn, workOn } from "./request-job.ts";
import { connectLocks, connectQueue, loadWorkerLibrary, type WorkerLibrary } from "./worker-clients.ts";
import { JobTeller } from "./worker-log.ts";
import { type FoundRequest, type RequestWorkerOptions, type WorkerSettings, workerSettings } from "./worker-options.ts";

export interface RequestWorker {
  /** Resolves once it takes jobs; Redis and the log need not be there yet. Rejects when the clients are not installed. */
  run(): Promise<void>;
  /**
   * Takes no new jobs, waits for those at hand, and releases their locks. After the grace their signals abort, and what
   * could not be recorded comes again elsewhere.
   */
  close(graceMs?: number): Promise<void>;
}

/** Executes the requests of one bounded context, each asked for by an event of the log, and records what became of it. */
export function requestWorker<Request = FoundRequest>(options: RequestWorkerOptions<Request>): RequestWorker {
  const hands = new Hands(workerSettings(options));
  return { run: () => hands.run(), close: (graceMs = GRACE_MS) => hands.close(graceMs) };
}

const GRACE_MS = 30_000;
/** How long whoever was told to end may take to do so, and BullMQ to put its connections away. */
const ENDING_MS = 5_000;
/** A request whose worker died so often is not given to another one. */
const STALLED_MAX = 100;
/** Between two looks at a Redis that does not answer. */
const AGAIN_MS = 1_000;

interface Running {
  readonly library: WorkerLibrary;
  readonly worker: Worker<unknown, JobReturn>;
  readonly clients: { readonly queue: Redis; readonly locks: Redis };
}

class Hands {
  readonly #settings: WorkerSettings;
  /** What is at hand has to end. */
  readonly #ending = new AbortController();
  /** Nobody is to connect again. */
  readonly #over = new AbortController();
  readonly #active = new Set<Promise<unknown>>();
  readonly #worker: JobTeller;
  #starting: Promise<Running> | null = null;
  #closing: Promise<void> | null = null;

  constructor(settings: WorkerSettings) {
    this.#settings = settings;
    this.#worker = new JobTeller(settings.onLog, { namespace: settings.context.namespace });
  }

  async run(): Promise<void> {
    if (this.#closing !== null) throw new RelayError("CONFIG_INVALID", "Worker: it was closed; make another one.");
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
    for (const client of Object.values(clients)) client.on("error", (error) => this.#trouble(error));
    const worker = new library.Worker<unknown, JobReturn>(name, (job, token) => this.#process(job, token), {
      connection: clients.queue,
      autorun: false,
      ...{ concurrency, prefix, lockDuration: stalledMs, stalledInterval: stalledMs },
      maxStalledCount: STALLED_MAX,
      runRetryDelay: AGAIN_MS,
    });
    worker.on("error", (error) => this.#trouble(error));
    // Our own are told where they happen, with all their ids; this one is BullMQ's, of a job that stalled too often.
    worker.on("failed", (job, error) => {
      if (!isRelayError(error)) this.#tellerOf(job).tell("broken", { reason: reasonOf(error) });
    });
    worker.run().catch((error: unknown) => this.#trouble(error));
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
    const teller = this.#tellerOf(job);
    const { clock, context, lockMs, random } = settings;
    try {
      if (this.#closing !== null) throw new PutBack("the worker is closing", 0);
      const { reference, jobId } = referenceIn(job);
      const locks = { redis: clients.locks, context, clock, random, lockMs };
      return await workOn({ settings, locks, reference, jobId, teller, ending: this.#ending.signal });
    } catch (error) {
      if (isRelayError(error) && !error.retryable) {
        teller.tell("broken", { reason: reasonOf(error) });
        throw error;
      }
      const afterMs = (error instanceof PutBack ? error.afterMs : null) ?? patienceMs(job.attemptsStarted);
      teller.tell("delayed", { reason: reasonOf(error, 500) });
      // Where this fails the job is not ours any more, or Redis is away: BullMQ finds it stalled and gives it out again.
      await job.moveToDelayed(clock.wallMs() + afterMs, token).catch((cause: unknown) => this.#trouble(cause));
      throw new library.DelayedError();
    }
  }

  async #close(graceMs: number): Promise<void> {
    const running = await this.#starting?.catch(() => null);
    if (!running) return;
    const { clients, worker } = running;
    await worker.pause(true);
    await this.#within(graceMs, Promise.allSettled(this.#active));
    this.#ending.abort(new Error("the worker ends"));
    await this.#within(ENDING_MS, Promise.allSettled(this.#active));
    const isAway = clients.queue.status !== "ready";
    const isClosed = await this.#within(ENDING_MS, worker.close(isAway || this.#active.size > 0));
    this.#over.abort();
    // BullMQ waits for an end that a client between two connections never tells.
    if (!isClosed) void worker.backend.blockingClient?.then((client) => client.emit("end"));
    for (const client of Object.values(clients)) client.disconnect();
  }

  /** Whether it ended in that time. */
  async #within(ms: number, work: Promise<unknown>): Promise<boolean> {
    const over = new AbortController();
    const ended = work.then(() => true);
    const timeout = this.#settings.clock.sleep(ms, over.signal).then(() => false);
    return await Promise.race([ended, timeout]).finally(() => over.abort());
  }

  #trouble(error: unknown): void {
    this.#worker.tell("trouble", { reason: reasonOf(error, 500) });
  }

  #tellerOf(job: Job | undefined): JobTeller {
    const { context, onLog } = this.#settings;
    const data = (job?.data ?? {}) as Partial<RequestReference>;
    const { requestId = null, tenant = null } = data;
    const stream = tenant === null || requestId === null ? null : streamOf(context, tenant, requestId);
    const jobId = job?.id ?? null;
    return new JobTeller(onLog, { namespace: context.namespace, tenant, requestId, jobId, eventId: jobId, stream });
  }
}

/** Throws EVENT_INVALID when it is no reference to a request. */
function referenceIn({ data, id: jobId }: Job<unknown>): { reference: RequestReference; jobId: string } {
  const { requestId, tenant } = (data ?? {}) as Partial<Record<keyof RequestReference, unknown>>;
  if (jobId !== undefined && isText(requestId) && isText(tenant)) return { reference: { requestId, tenant }, jobId };
  throw new RelayError("EVENT_INVALID", `Job ${jobId} is no reference { tenant, requestId } to a request.`);
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
