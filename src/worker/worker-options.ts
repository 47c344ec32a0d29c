import { type Clock, type Random, systemClock, systemRandom } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import type { RetryPolicy } from "../core/retry-policy.ts";
import type { EventLog, LoggedEvent } from "../ports/event-log.ts";
import type { RequestContext } from "../ports/request-queue.ts";
import { contextName, requestContext } from "../requests/request-names.ts";
import type { OutcomeTypes } from "./request-view.ts";
import { type RedisPlace, requireRedisPlace } from "./worker-clients.ts";
import type { WorkerLogLine, WorkerSample } from "./worker-log.ts";

/** A request as it is in the log: the argument of `resolve`, and of `execute` if there is no `resolve`. */
export interface FoundRequest {
  readonly tenant: string;
  readonly requestId: string;
  readonly stream: string;
  /** All events of the stream, in order. */
  readonly events: readonly LoggedEvent[];
  /** The event that requested this job. */
  readonly asking: LoggedEvent;
}

/** What `execute` gets besides the request. */
export interface ExecuteContext {
  /** `tenant:requestId:version`, the same for every redelivery and every scheduled retry of one request. */
  readonly idempotencyKey: string;
  /** 1 is the first attempt. */
  readonly attempt: number;
  /** Aborts when the lock is lost or the worker must stop. An error after that is not recorded as a failure. */
  readonly signal: AbortSignal;
  /** Rises with every lock of the tenant, for providers that can reject stale calls. */
  readonly fence: number;
  readonly jobId: string;
  readonly correlationId: string | null;
}

/** The outcome of a job as it is in the log. */
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
  /** It was already recorded; `project` may have seen it before. */
  readonly isRepeated: boolean;
}

/** Options of `requestWorker`. */
export interface RequestWorkerOptions<Request = FoundRequest> {
  /** `<context>.<aggregate>`, as in `payment.payout`. */
  readonly context: string;
  /** Prefix of the Redis keys and label of the metrics. Default: the context's name. */
  readonly namespace?: string;
  readonly redis: RedisPlace;
  /** The relay's queue. Default: the context's name. */
  readonly queue?: string;
  /** The prefix of BullMQ's keys. */
  readonly prefix?: string;
  /** Jobs that run at the same time. */
  readonly concurrency?: number;
  readonly log: EventLog;
  /** `PayoutCompleted.v1` and `PayoutFailed.v1` for the aggregate `payout` by default. */
  readonly outcomes?: Partial<OutcomeTypes>;
  /** `source` of the outcomes. Default: `service://<context>/<aggregate>`. */
  readonly source?: string;
  readonly resolve?: (found: FoundRequest) => Request | Promise<Request>;
  readonly execute: (request: Request, context: ExecuteContext) => unknown;
  /** Who retries a failure: the domain, which reads it from the log, or a schedule. */
  readonly retry?: "domain" | RetryPolicy;
  /** How long the lock of a dead worker lasts. */
  readonly lockMs?: number;
  /** How often a job checks a lock that another worker holds. */
  readonly lockRecheckMs?: number;
  /** BullMQ delivers a job to another worker when its own has not renewed it for this time. */
  readonly stalledMs?: number;
  /** The longest delay that a Retry-After can request. */
  readonly retryAfterMsMax?: number;
  /** Updates snapshots and metrics. Called again for the same outcome when the job is delivered again. */
  readonly project?: (outcome: RecordedOutcome) => unknown;
  readonly onLog?: (line: WorkerLogLine) => void;
  readonly onMetric?: (sample: WorkerSample) => void;
  /** Clock and randomness, for tests. */
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
  /** `resolve` and `execute` in one. */
  readonly perform: (found: FoundRequest, context: ExecuteContext) => Promise<unknown>;
  /** Null: the domain retries. */
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
  if (queue === "" || queue.includes(":"))
    throw invalid(`queue is ${JSON.stringify(queue)}; it must not be empty or contain a colon`);
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
  // Without `resolve` the request is the FoundRequest, as the type parameter's default says.
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
