import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { LoggedEvent, NewLoggedEvent } from "../ports/event-log.ts";
import type { RequestReference } from "../requests/request-names.ts";
import type { ExecuteLock } from "./execute-lock.ts";
import { type Execution, outcomeEvent } from "./outcome-event.ts";
import { PutBack, patienceMs } from "./put-back.ts";
import { readRequest } from "./request-log.ts";
import type { RequestView } from "./request-view.ts";
import type { JobTeller } from "./worker-log.ts";
import type { WorkerSettings } from "./worker-options.ts";

export interface Recording {
  readonly settings: WorkerSettings;
  readonly reference: RequestReference;
  readonly jobId: string;
  readonly stream: string;
  readonly lock: ExecuteLock;
  readonly teller: JobTeller;
  /** Aborts when the worker must end. */
  readonly ending: AbortSignal;
}

export interface Recorded {
  readonly event: NewLoggedEvent | LoggedEvent;
  /** Another worker recorded it before. */
  readonly isRepeated: boolean;
}

/** Whoever loses so many races for one stream is not racing: something writes to it without end. */
const REFUSALS_MAX = 20;

/**
 * Appends the outcome behind the last event that was read, under a lock that is proved to be there. The effect has
 * happened: so it goes on until the log answers, and gives up only what the log refuses for good.
 */
export async function recordOutcome(recording: Recording, execution: Execution, read: RequestView): Promise<Recorded> {
  const { ending, settings, teller } = recording;
  let view: RequestView | null = read;
  let refusals = 0;
  for (let tries = 0; ; tries += 1) {
    try {
      if (!(await recording.lock.isHeld())) {
        await provedAgain(recording, execution);
        view = null;
      }
      view ??= await readAgain(recording);
      if (view.standing !== null) return { event: view.standing, isRepeated: true };
      const event = outcomeEvent(execution, view, recording.reference, settings);
      await settings.log.append(recording.stream, view.last, [event]);
      return { event, isRepeated: false };
    } catch (error) {
      if (error instanceof PutBack) throw error;
      if (isRelayError(error) && !error.retryable) throw unrecorded(error);
      if (isRelayError(error, "WRONG_REVISION")) {
        view = null;
        refusals += 1;
        if (refusals >= REFUSALS_MAX) throw unrecorded(error);
        continue;
      }
      teller.tell("waiting", { reason: `its outcome cannot be recorded yet: ${reasonOf(error, 500)}` });
      await settings.clock.sleep(patienceMs(tries), ending);
      if (ending.aborted) throw new PutBack("the worker ended before the outcome could be recorded", 0);
    }
  }
}

async function readAgain({ jobId, settings, stream }: Recording): Promise<RequestView> {
  return (await readRequest(settings.log, stream, jobId, settings.types)).view;
}

/**
 * A lock that was lost in mid-work. A failure may be the work of the abort, and somebody else may be at it: nothing is
 * recorded. A success is recorded once the lock is ours again; while another has it, that one asks the provider by the
 * same key and records what it says.
 */
async function provedAgain({ lock, settings }: Recording, execution: Execution): Promise<void> {
  if (execution.kind === "failed") throw new PutBack("the lock was lost in mid-work; nothing was recorded");
  const freeInMs = await lock.take();
  if (freeInMs === null) return;
  const reason = "the lock was lost in mid-work, and another worker has it now: that one records the outcome";
  throw new PutBack(reason, Math.min(Math.max(0, freeInMs), settings.lockRecheckMs));
}

function unrecorded(cause: RelayError): RelayError {
  const what = `It was executed, and its outcome cannot be recorded: ${cause.message} Then retry the job in BullMQ.`;
  return new RelayError("EVENT_INVALID", what, { cause });
}
