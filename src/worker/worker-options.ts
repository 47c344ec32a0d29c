import { type Clock, type Random, systemClock, systemRandom } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import type { RetryPolicy } from "../core/retry-policy.ts";
import type { EventLog, LoggedEvent } from "../ports/event-log.ts";
import { contextName, type RequestContext, requestContext } from "../requests/request-names.ts";
import type { OutcomeTypes } from "./request-view.ts";
import { type RedisPlace, requireRedisPlace } from "./worker-clients.ts";
import type { WorkerLogLine, WorkerSample } from "./worker-log.ts";

/** A request as the log has it: what `resolve` begins with, and what `execute` gets without one. */
export interface FoundRequest {
  readonly tenant: string;
  readonly requestId: string;
  readonly stream: string;
  /** All of the stream, in its order. */
  readonly events: readonly LoggedEvent[];
  /** The one that asked for this job. */
  readonly asking: LoggedEvent;
}

export interface ExecuteContext {
  /** `tenant:requestId:version`, the same for every redelivery and every scheduled retry of the same wish. */
  readonly idempotencyKey: string;
  /** 1 is the first try. */
  readonly attempt: number;
  /** Aborts when the lock is lost or the worker must end: whatever comes afterwards is not recorded as a failure. */
  readonly signal: AbortSignal;
  /** Rises with every lock of the tenant, for providers that refuse stragglers. */
  readonly fence: number;
  readonly jobId: string;
  readonly correlationId: string | null;
}

/** What the log says became of a job. */
export interface RecordedOutcome {
  readonly kind: "completed" | "failed";
  readonly tenant: string;
  readonly requestId: string;
  readonly stream: string;
  readonly eventId: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly attempt: number;
  /** It stood there already; `project` may have seen it before. */
  readonly isRepeated: boolean;
}

export interface RequestWorkerOptions<Request = FoundRequest> {
  /** `<context>.<aggregate>`, as in `payment.payout`. */
  readonly context: string;
  /** Of the keys in Redis and of the metrics; the context's name without it. */
  readonly namespace?: string;
  readonly redis: RedisPlace;
  /** The relay's queue; the context's name without it. */
  readonly queue?: string;
  /** What BullMQ's keys begin with. */
  readonly prefix?: string;
  /** Jobs at a time. */
  readonly concurrency?: number;
  readonly log: EventLog;
  /** `PayoutCompleted.v1` and `PayoutFailed.v1` for the aggregate `payout`, unless told otherwise. */
  readonly outcomes?: Partial<OutcomeTypes>;
  /** `service://<context>/<aggregate>` without it. */
  readonly source?: string;
  readonly resolve?: (found: FoundRequest) => Request | Promise<Request>;
  readonly execute: (request: Request, context: ExecuteContext) => unknown;
  /** Whether a failure is tried again: by the domain, which sees it in the log, or by a schedule. */
  readonly retry?: "domain" | RetryPolicy;
  /** How long a lock outlives a worker that died. */
  readonly lockMs?: number;
  /** How long a job waits that another worker has locked, before it looks again. */
  readonly lockRecheckMs?: number;
  /** BullMQ gives a job to another worker when its own has not been heard of for so long. */
  readonly stalledMs?: number;
  /** No Retry-After makes a request wait longer. */
  readonly retryAfterMsMax?: number;
  /** Updates snapshots and metrics. Called again for the same outcome whenever the job is delivered again. */
  readonly project?: (outcome: RecordedOutcome) => unknown;
  readonly onLog?: (line: WorkerLogLine) => void;
  readonly onMetric?: (sample: WorkerSample) => void;
  /** Time and chance, for tests. */
  readonly clock?: Clock;
  readonly random?: Random;
}

/** The options with every default filled in. */
export interface WorkerSettings {
  readonly context: RequestContext;
  readonly redis: RedisPlace;
  readonly queue: string;
  readonly prefix: string;
  readonly concurrency: number;
  readonly log: EventLog;
  readonly types: OutcomeTypes;
  readonly source: string;
  /** Resolve and execute in one. */
  readonly perform: (found: FoundRequest, context: ExecuteContext) => Promise<unknown>;
  /** Null: by the domain. */
  readonly retry: RetryPolicy | null;
  readonly lockMs: number;
  readonly lockRecheckMs: number;
  readonly stalledMs: number;
  readonly retryAfterMsMax: number;
  readonly project: (outcome: RecordedOutcome) => unknown;
  readonly onLog: (line: WorkerLogLine) => void;
  readonly onMetric: (sample: WorkerSample) => void;
  readonly clock: Clock;
  readonly random: Random;
}

const DAY_MS = 86_400_000;

/** Fills in the defaults; throws CONFIG_INVALID with the option's name. */
export function workerSettings<Request>(options: RequestWorkerOptions<Request>): WorkerSettings {
  const context = requestContext(options.context, options.namespace);
  const queue = options.queue ?? contextName(context);
  if (queue === "" || queue.includes(":")) throw invalid(`queue is ${JSON.stringify(queue)}, empty or with a colon`);
  requireRedisPlace(options.redis);
  return {
    context,
    queue,
    redis: options.redis,
    prefix: options.prefix ?? "bull",
    concurrency: whole("concurrency", options.concurrency ?? 10, 1, 10_000),
    log: options.log,
    types: outcomeTypes(context, options.outcomes),
    source: options.source ?? `service://${context.context}/${context.aggregate}`,
    perform: performer(options),
    retry: options.retry === undefined || options.retry === "domain" ? null : options.retry,
    lockMs: whole("lockMs", options.lockMs ?? 900_000, 100, DAY_MS),
    lockRecheckMs: whole("lockRecheckMs", options.lockRecheckMs ?? 5_000, 10, DAY_MS),
    stalledMs: whole("stalledMs", options.stalledMs ?? 30_000, 100, DAY_MS),
    retryAfterMsMax: whole("retryAfterMsMax", options.retryAfterMsMax ?? DAY_MS, 0, 30 * DAY_MS),
    project: options.project ?? (() => {}),
    onLog: options.onLog ?? (() => {}),
    onMetric: options.onMetric ?? (() => {}),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
  };
}

function performer<Request>({ execute, resolve }: RequestWorkerOptions<Request>): WorkerSettings["perform"] {
  // Without `resolve` the request is what was found: the type parameter's default says so.
  const resolved = resolve ?? ((found: FoundRequest) => found as Request);
  return async (found, context) => await execute(await resolved(found), context);
}

function outcomeTypes({ aggregate }: RequestContext, given: Partial<OutcomeTypes> = {}): OutcomeTypes {
  const name = aggregate.replaceAll(/(?:^|[-_])([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const types = { completed: `${name}Completed.v1`, failed: `${name}Failed.v1`, ended: [], ...given };
  if (types.completed === "" || types.failed === "") throw invalid("outcomes has an empty type");
  if (types.completed === types.failed) throw invalid("outcomes has the same type for completed and failed");
  return types;
}

function whole(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalid(`${name} is ${value}; it must be a whole number from ${min} to ${max}`);
}

function invalid(what: string): RelayError {
  return new RelayError("CONFIG_INVALID", `Worker: ${what}.`);
}
