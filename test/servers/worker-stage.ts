import { randomUUID } from "node:crypto";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import type { EventLog, LoggedEvent } from "../../src/ports/event-log.ts";
import { asksForJob } from "../../src/requests/request-filter.ts";
import { EXECUTE_REQUEST, requestContext, streamOf, streamPrefix } from "../../src/requests/request-names.ts";
import { referenceOf } from "../../src/requests/request-reference.ts";
import { type MemoryEventLog, memoryEventLog } from "../../src/testing/memory-event-log.ts";
import { type RequestWorker, requestWorker } from "../../src/worker/request-worker.ts";
import type { WorkerLogLine, WorkerSample } from "../../src/worker/worker-log.ts";
import type { RequestWorkerOptions } from "../../src/worker/worker-options.ts";
import { until } from "./until.ts";

let opened = 0;

export const TENANT = "core";

/** One bounded context with a log in memory, a queue on a real Redis, and workers. */
export class WorkerStage implements AsyncDisposable {
  readonly context: string;
  readonly log: MemoryEventLog = memoryEventLog();
  readonly queue: Queue;
  readonly redis: Redis;
  readonly lines: WorkerLogLine[] = [];
  readonly samples: WorkerSample[] = [];
  readonly #redisUrl: string;
  readonly #workers: RequestWorker[] = [];
  readonly #ended = new AbortController();
  #relaying: Promise<void> = Promise.resolve();

  constructor(redisUrl: string) {
    opened += 1;
    this.#redisUrl = redisUrl;
    this.context = `payment${process.pid}_${opened}.payout`;
    this.redis = new Redis(redisUrl, { maxRetriesPerRequest: null });
    this.redis.on("error", () => {});
    this.queue = new Queue(this.context, { connection: this.redis });
    this.queue.on("error", () => {});
  }

  streamOf(requestId: string): string {
    return streamOf(requestContext(this.context), TENANT, requestId);
  }

  /** What a command does. */
  async append(requestId: string, type: string, metadata: object = {}, data: object = {}): Promise<string> {
    const stream = this.streamOf(requestId);
    const id = randomUUID();
    const last = await this.log.readLast(stream);
    const ids = {
      correlationId: `corr-${requestId}`,
      causationId: `cmd-${requestId}`,
      source: "service://shop/checkout",
    };
    const event = {
      id,
      type,
      data: { id: requestId, ...data },
      metadata: { ...ids, tenant: TENANT, eventId: id, ...metadata },
    };
    await this.log.append(stream, last?.revision ?? null, [event]);
    return id;
  }

  /** The job as the relay makes it. */
  async enqueue(jobId: string, requestId: string): Promise<void> {
    await this.queue.add(EXECUTE_REQUEST, { tenant: TENANT, requestId }, { jobId, attempts: 1 });
  }

  async ask(requestId: string, data: object = {}): Promise<string> {
    const id = await this.append(requestId, "PayoutCreated.v1", { intent: "outbox" }, data);
    await this.enqueue(id, requestId);
    return id;
  }

  /** Makes jobs of all events that ask for one from now on, as the relay does. */
  relay(): void {
    const context = requestContext(this.context);
    const follow = async () => {
      const place = { streamPrefix: streamPrefix(context), pageMax: 100, signal: this.#ended.signal };
      for await (const page of this.log.subscribe({ ...place, from: "now" })) {
        for (const item of page) {
          if (item.kind !== "event" || !asksForJob(item.event, { suffixes: [] })) continue;
          const referenced = referenceOf(item.event, context, Date.now());
          if (!("job" in referenced)) throw new Error(referenced.fault);
          const { delayMs, eventId, requestId, tenant } = referenced.job;
          await this.queue.add(EXECUTE_REQUEST, { tenant, requestId }, { jobId: eventId, attempts: 1, delay: delayMs });
        }
      }
    };
    this.#relaying = follow();
  }

  async work(options: Partial<RequestWorkerOptions> = {}): Promise<RequestWorker> {
    const worker = requestWorker({
      context: this.context,
      redis: this.#redisUrl,
      log: this.log as EventLog,
      lockRecheckMs: 20,
      stalledMs: 1_000,
      onLog: (line) => this.lines.push(line),
      onMetric: (sample) => this.samples.push(sample),
      execute: () => "paid",
      ...options,
    });
    this.#workers.push(worker);
    await worker.run();
    return worker;
  }

  /** The outcome events of a request, in their order. */
  outcomes(requestId: string): readonly LoggedEvent[] {
    return this.log.events.filter(
      ({ stream, type }) => stream === this.streamOf(requestId) && /(?:Completed|Failed)\.v1$/.test(type),
    );
  }

  async outcome(requestId: string): Promise<LoggedEvent> {
    return await until(`${requestId} has an outcome`, () => this.outcomes(requestId)[0]);
  }

  async line(what: string, isIt: (line: WorkerLogLine) => boolean): Promise<WorkerLogLine> {
    return await until(what, () => this.lines.find(isIt));
  }

  /** BullMQ is through with the job. */
  async finished(jobId: string): Promise<string> {
    return await until(`job ${jobId} is finished`, async () => {
      const state = await this.queue.getJobState(jobId);
      return state === "completed" || state === "failed" ? state : null;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#relaying;
    await Promise.all(this.#workers.map((worker) => worker.close(1_000)));
    await this.queue.close();
    this.redis.disconnect();
  }
}
