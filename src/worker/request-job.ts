import { isRelayError, reasonOf } from "../core/errors.ts";
import { type RequestReference, streamOf } from "../requests/request-names.ts";
import { type ExecuteLock, type LockContext, takeLock } from "./execute-lock.ts";
import { failureOf } from "./failures.ts";
import type { Execution } from "./outcome-event.ts";
import { type Recorded, type Recording, recordOutcome } from "./outcome-record.ts";
import { type ReadRequest, readRequest } from "./request-log.ts";
import { idempotencyKey, type RequestView } from "./request-view.ts";
import { Requeue } from "./requeue.ts";
import { type JobLogger, quietly } from "./worker-log.ts";
import type { FoundRequest, RecordedOutcome, WorkerSettings } from "./worker-options.ts";

interface RequestJob {
  readonly settings: WorkerSettings;
  readonly locks: LockContext;
  readonly reference: RequestReference;
  /** The id of the event that requested it. */
  readonly jobId: string;
  readonly logger: JobLogger;
  /** Aborts when the worker must stop. */
  readonly ending: AbortSignal;
}

/** What BullMQ keeps of a finished job: a reference to the outcome, never its data. */
export interface JobReturn {
  readonly outcome: "completed" | "failed" | "skipped";
  readonly eventId: string | null;
}

/** Locks, reads, executes and records. Throws Requeue when the job must be delivered again. */
export async function processJob(job: RequestJob): Promise<JobReturn> {
  const { requestId, tenant } = job.reference;
  const stream = streamOf(job.settings.context, tenant, requestId);
  const taking = await takeLock(job.locks, tenant, requestId);
  if (taking.kind === "busy") return await lockedOut(job, stream, taking.freeInMs);
  const { lock } = taking;
  try {
    const read = await readJob(job, stream);
    const { view } = read;
    if (view.recorded !== null) return await skipped(job, stream, view);
    if (view.endedBy !== null) return alreadyEnded(job, view);
    return await executed(job, stream, lock, read);
  } finally {
    await lock.release();
  }
}

async function readJob({ jobId, settings, logger }: RequestJob, stream: string): Promise<ReadRequest> {
  const read = await readRequest(settings.log, stream, jobId, settings.types);
  logger.learn(read.view.asking, read.view.attempt);
  return read;
}

/** Another worker holds the lock. If the outcome is already recorded, there is no need to wait. */
async function lockedOut(job: RequestJob, stream: string, freeInMs: number): Promise<JobReturn> {
  const { view } = await readJob(job, stream);
  if (view.recorded !== null) return await skipped(job, stream, view);
  const { lockRecheckMs } = job.settings;
  // No worker writes a lock without expiry; an operator must check it.
  const isEndless = freeInMs < 0;
  const waitMs = isEndless ? lockRecheckMs : Math.min(freeInMs, lockRecheckMs);
  const reason = isEndless
    ? "its execute lock has no expiry, so something else wrote it: delete the key"
    : "another worker holds its execute lock";
  throw new Requeue(reason, waitMs);
}

async function skipped(job: RequestJob, stream: string, view: RequestView): Promise<JobReturn> {
  const event = view.recorded!;
  await project(job, stream, view, { event, isRepeated: true });
  return skip(job, `its outcome is already recorded: ${event.type}`, event.id);
}

function alreadyEnded(job: RequestJob, { endedBy }: RequestView): JobReturn {
  return skip(job, `the request was ended by ${endedBy!.type} at revision ${endedBy!.revision}`, endedBy!.id);
}

function skip({ settings, logger }: RequestJob, reason: string, outcomeId: string): JobReturn {
  logger.log("skipped", { reason, outcomeId });
  count(settings, "skipped");
  return { outcome: "skipped", eventId: outcomeId };
}

async function executed(job: RequestJob, stream: string, lock: ExecuteLock, read: ReadRequest): Promise<JobReturn> {
  const { ending, jobId, reference, settings, logger } = job;
  const { clock } = settings;
  const { view } = read;
  logger.log("started");
  const startedMs = clock.monotonicMs();
  const execution = await execute(job, stream, lock, read);
  const durationMs = Math.round(clock.monotonicMs() - startedMs);
  const recording: Recording = { settings, reference, jobId, stream, lock, logger, ending };
  const recorded = await recordOutcome(recording, execution, view);
  const outcome = kindOf(settings, recorded);
  const reason = execution.kind === "failed" ? execution.failure.reason : null;
  logger.log(outcome, { durationMs, outcomeId: recorded.event.id, reason });
  await project(job, stream, view, recorded);
  count(settings, outcome);
  const labels = { namespace: settings.context.namespace, outcome };
  quietly(() => settings.onMetric({ name: "outbox_request_duration_ms", value: durationMs, labels }));
  const lagMs = Math.max(0, clock.wallMs() - view.asking.createdMs);
  quietly(() => settings.onMetric({ name: "outbox_request_lag_ms", value: lagMs, labels }));
  return { outcome, eventId: recorded.event.id };
}

async function execute(
  { ending, jobId, reference, settings }: RequestJob,
  stream: string,
  lock: ExecuteLock,
  { events, view }: ReadRequest,
): Promise<Execution> {
  const { tenant, requestId } = reference;
  const found: FoundRequest = { tenant, requestId, stream, events, asking: view.asking };
  const signal = AbortSignal.any([lock.signal, ending]);
  const { correlationId } = view.asking.metadata ?? {};
  try {
    const result = await settings.perform(found, {
      idempotencyKey: idempotencyKey(tenant, requestId, view),
      attempt: view.attempt,
      signal,
      fence: lock.fence,
      jobId,
      correlationId: typeof correlationId === "string" ? correlationId : null,
    });
    return { kind: "completed", result };
  } catch (error) {
    // An execution that ended because of the abort is not a failure of the request.
    if (signal.aborted)
      throw new Requeue(`${reasonOf(signal.reason, 300)}; nothing was recorded`, null, { cause: error });
    if (isRelayError(error, "LOG_UNREACHABLE")) throw error;
    const atMs = settings.clock.wallMs();
    const failure = failureOf(error, atMs, settings.retryAfterMsMax);
    return { kind: "failed", failure, atMs, draw: settings.random.next() };
  }
}

async function project(
  { reference: { requestId, tenant }, settings }: RequestJob,
  stream: string,
  { attempt }: RequestView,
  recorded: Recorded,
): Promise<void> {
  const { data, id: eventId, metadata, type } = recorded.event;
  const kind = kindOf(settings, recorded);
  const { isRepeated } = recorded;
  const about = { kind, tenant, requestId, stream, eventId, type, data, attempt, isRepeated };
  try {
    await settings.project({ ...about, metadata: metadata ?? {} });
  } catch (error) {
    throw new Requeue(`its outcome is recorded, but project failed: ${reasonOf(error, 300)}`, null, { cause: error });
  }
}

const kindOf = ({ types }: WorkerSettings, { event }: Recorded): RecordedOutcome["kind"] =>
  event.type === types.completed ? "completed" : "failed";

function count({ context: { namespace }, onMetric }: WorkerSettings, outcome: string): void {
  quietly(() => onMetric({ name: "outbox_requests_total", value: 1, labels: { namespace, outcome } }));
}
