import { isRelayError, reasonOf } from "../core/errors.ts";
import { type RequestReference, streamOf } from "../requests/request-names.ts";
import { type ExecuteLock, type LockPlace, takeLock } from "./execute-lock.ts";
import { failureOf } from "./failures.ts";
import type { Execution } from "./outcome-event.ts";
import { type Recorded, type Recording, recordOutcome } from "./outcome-record.ts";
import { PutBack } from "./put-back.ts";
import { type ReadRequest, readRequest } from "./request-log.ts";
import { idempotencyKey, type RequestView } from "./request-view.ts";
import { type JobTeller, quietly } from "./worker-log.ts";
import type { FoundRequest, RecordedOutcome, WorkerSettings } from "./worker-options.ts";

interface RequestJob {
  readonly settings: WorkerSettings;
  readonly locks: LockPlace;
  readonly reference: RequestReference;
  /** The id of the event that asked for it. */
  readonly jobId: string;
  readonly teller: JobTeller;
  /** Aborts when the worker must end. */
  readonly ending: AbortSignal;
}

/** What BullMQ keeps of a finished job: where to look, and nothing of what was said. */
export interface JobReturn {
  readonly outcome: "completed" | "failed" | "skipped";
  readonly eventId: string | null;
}

/** Lock, read, execute, record. Throws PutBack when the job is to come again. */
export async function workOn(job: RequestJob): Promise<JobReturn> {
  const { requestId, tenant } = job.reference;
  const stream = streamOf(job.settings.context, tenant, requestId);
  const taking = await takeLock(job.locks, tenant, requestId);
  if (taking.kind === "busy") return await lockedOut(job, stream, taking.freeInMs);
  const { lock } = taking;
  try {
    const read = await readJob(job, stream);
    const { view } = read;
    if (view.standing !== null) return await skipped(job, stream, view);
    if (view.endedBy !== null) return unwanted(job, view);
    return await executed(job, stream, lock, read);
  } finally {
    await lock.release();
  }
}

async function readJob({ jobId, settings, teller }: RequestJob, stream: string): Promise<ReadRequest> {
  const read = await readRequest(settings.log, stream, jobId, settings.types);
  teller.learn(read.view.asking, read.view.attempt);
  return read;
}

/** Another worker has the lock. An outcome that stands already makes waiting for it needless. */
async function lockedOut(job: RequestJob, stream: string, freeInMs: number): Promise<JobReturn> {
  const { view } = await readJob(job, stream);
  if (view.standing !== null) return await skipped(job, stream, view);
  const { lockRecheckMs } = job.settings;
  // A lock that never expires was written by somebody else; a person has to look at it.
  const isEndless = freeInMs < 0;
  const waitMs = isEndless ? lockRecheckMs : Math.min(freeInMs, lockRecheckMs);
  const reason = isEndless ? "its execute lock has no expiry" : "another worker has its execute lock";
  throw new PutBack(reason, waitMs);
}

async function skipped(job: RequestJob, stream: string, view: RequestView): Promise<JobReturn> {
  const event = view.standing!;
  await project(job, stream, view, { event, isRepeated: true });
  return skip(job, `its outcome stands already: ${event.type}`, event.id);
}

function unwanted(job: RequestJob, { endedBy }: RequestView): JobReturn {
  return skip(job, `the request is over since ${endedBy!.type} at revision ${endedBy!.revision}`, endedBy!.id);
}

function skip({ settings, teller }: RequestJob, reason: string, outcomeId: string): JobReturn {
  teller.tell("skipped", { reason, outcomeId });
  count(settings, "skipped");
  return { outcome: "skipped", eventId: outcomeId };
}

async function executed(job: RequestJob, stream: string, lock: ExecuteLock, read: ReadRequest): Promise<JobReturn> {
  const { ending, jobId, reference, settings, teller } = job;
  const { clock } = settings;
  const { view } = read;
  teller.tell("started");
  const startedMs = clock.monotonicMs();
  const execution = await execute(job, stream, lock, read);
  const durationMs = Math.round(clock.monotonicMs() - startedMs);
  const recording: Recording = { settings, reference, jobId, stream, lock, teller, ending };
  const recorded = await recordOutcome(recording, execution, view);
  const outcome = kindOf(settings, recorded);
  const reason = execution.kind === "failed" ? execution.failure.reason : null;
  teller.tell(outcome, { durationMs, outcomeId: recorded.event.id, reason });
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
    // What ends because it was told to end is no failure of the request.
    if (signal.aborted)
      throw new PutBack(`${reasonOf(signal.reason, 300)}; nothing was recorded`, null, { cause: error });
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
    throw new PutBack(`its outcome is recorded, but project failed: ${reasonOf(error, 300)}`, null, { cause: error });
  }
}

const kindOf = ({ types }: WorkerSettings, { event }: Recorded): RecordedOutcome["kind"] =>
  event.type === types.completed ? "completed" : "failed";

function count({ context: { namespace }, onMetric }: WorkerSettings, outcome: string): void {
  quietly(() => onMetric({ name: "outbox_requests_total", value: 1, labels: { namespace, outcome } }));
}
