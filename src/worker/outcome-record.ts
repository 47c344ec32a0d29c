import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { LoggedEvent, NewLoggedEvent } from "../ports/event-log.ts";
import type { RequestReference } from "../requests/request-names.ts";
import type { ExecuteLock } from "./execute-lock.ts";
import { type Execution, outcomeEvent } from "./outcome-event.ts";
import { readRequest } from "./request-log.ts";
import type { RequestView } from "./request-view.ts";
import { Requeue, retryDelayMs } from "./requeue.ts";
import type { JobLogger } from "./worker-log.ts";
import type { WorkerSettings } from "./worker-options.ts";

/** The job whose outcome is to be recorded. */
export interface Recording {
  readonly settings: WorkerSettings;
  readonly reference: RequestReference;
  readonly jobId: string;
  readonly stream: string;
  readonly lock: ExecuteLock;
  readonly logger: JobLogger;
  /** Aborts when the worker must stop. */
  readonly ending: AbortSignal;
}

/** The outcome as it is in the log. */
export interface Recorded {
  readonly event: NewLoggedEvent | LoggedEvent;
  /** It was recorded before, by another worker or an earlier delivery. */
  readonly isRepeated: boolean;
}

/** Losing this many races for one stream means that something writes to it continuously. */
const REFUSALS_MAX = 20;

/**
 * Appends the outcome after the last event that was read, under a lock that Redis has confirmed. The effect has
 * happened, so this retries until the log answers, and fails only when the log rejects the outcome for good.
 */
export async function recordOutcome(recording: Recording, execution: Execution, read: RequestView): Promise<Recorded> {
  const { ending, settings, logger } = recording;
  let view: RequestView | null = read;
  let refusals = 0;
  for (let tries = 0; ; tries += 1) {
    try {
      if (!(await recording.lock.isHeld())) {
        await retakeLock(recording, execution);
        view = null;
      }
      view ??= await readAgain(recording);
      if (view.recorded !== null) return { event: view.recorded, isRepeated: true };
      const event = outcomeEvent(execution, view, recording.reference, settings);
      await settings.log.append(recording.stream, view.last, [event]);
      return { event, isRepeated: false };
    } catch (error) {
      if (error instanceof Requeue) throw error;
      if (isRelayError(error) && !error.retryable) throw unrecorded(error);
      if (isRelayError(error, "WRONG_REVISION")) {
        view = null;
        refusals += 1;
        if (refusals >= REFUSALS_MAX) throw unrecorded(error);
        continue;
      }
      logger.log("waiting", { reason: `its outcome cannot be recorded yet: ${reasonOf(error, 500)}` });
      await settings.clock.sleep(retryDelayMs(tries), ending);
      if (ending.aborted) throw new Requeue("the worker stopped before the outcome could be recorded", 0);
    }
  }
}

async function readAgain({ jobId, settings, stream }: Recording): Promise<RequestView> {
  return (await readRequest(settings.log, stream, jobId, settings.types)).view;
}

/**
 * Handles a lock that was lost during execution. A failure may come from the abort, and another worker may be
 * executing: nothing is recorded. A success is recorded once the lock is retaken. While another worker holds the lock,
 * that worker calls the provider with the same idempotency key and records the answer.
 */
async function retakeLock({ lock, settings }: Recording, execution: Execution): Promise<void> {
  if (execution.kind === "failed") throw new Requeue("the lock was lost during execution; nothing was recorded");
  const freeInMs = await lock.take();
  if (freeInMs === null) return;
  const reason = "the lock was lost during execution and another worker holds it now: that one records the outcome";
  throw new Requeue(reason, Math.min(Math.max(0, freeInMs), settings.lockRecheckMs));
}

function unrecorded(cause: RelayError): RelayError {
  const what = `The request was executed, but its outcome cannot be recorded: ${cause.message} Fix the cause, then retry the job in BullMQ.`;
  return new RelayError("EVENT_INVALID", what, { cause });
}
