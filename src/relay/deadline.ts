import type { Clock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";

/** The reason of work that was aborted because its time was over. */
export const TIMED_OUT: unique symbol = Symbol("timed out");

/** The error of a publish without an answer: its outcome is unknown. */
export function noAnswerWithin(destination: string, ms: number): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", `${destination} gave no answer within ${ms} ms.`);
}

/**
 * The reason of internal aborts. No one reads it, but without one the runtime creates an error with a stack each time.
 */
const OVER = "over";

/** True when the work ended within this time. The work continues in any case; its failure in time is thrown. */
export async function endsWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const isLate = clock.sleep(ms, timer.signal).then(() => false);
  try {
    return await Promise.race([work.then(() => true), isLate]);
  } finally {
    timer.abort(OVER);
  }
}

/** Called when work does not end although it was aborted, this long after its deadline. */
interface StuckGuard {
  readonly ms: number;
  readonly onStuck: () => void;
}

/**
 * Runs the work under a signal that aborts with `outer` or after `ms`. Rejects with TIMED_OUT when the time was over.
 */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  stuckGuard?: StuckGuard,
): Promise<T> {
  const controller = new AbortController();
  const timer = new AbortController();
  let timedOut = false;
  let isOver = false;
  const onAbort = (): void => controller.abort();
  if (outer.aborted) controller.abort();
  else outer.addEventListener("abort", onAbort, { once: true });
  void clock.sleep(ms, timer.signal).then(() => {
    timedOut = !timer.signal.aborted;
    if (!timedOut) return;
    controller.abort();
    if (stuckGuard !== undefined)
      void clock.sleep(stuckGuard.ms, timer.signal).then(() => isOver || stuckGuard.onStuck());
  });
  try {
    return await work(controller.signal);
  } catch (error) {
    throw timedOut ? TIMED_OUT : error;
  } finally {
    isOver = true;
    timer.abort(OVER);
    outer.removeEventListener("abort", onAbort);
  }
}
