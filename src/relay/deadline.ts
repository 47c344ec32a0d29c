import type { Clock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";

/** Work that was cut off because its time was over. */
export const TIMED_OUT: unique symbol = Symbol("timed out");

export function noAnswerWithin(destination: string, ms: number): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", `${destination} gave no answer within ${ms} ms.`);
}

/** Nobody asks why; without a reason the runtime makes up an error with a stack, each time. */
const OVER = "over";

/** Does the work under a signal that aborts with `outer` or after `ms`; rejects with TIMED_OUT when it was the time. */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const timer = new AbortController();
  let timedOut = false;
  const onAbort = (): void => controller.abort();
  if (outer.aborted) controller.abort();
  else outer.addEventListener("abort", onAbort, { once: true });
  void clock.sleep(ms, timer.signal).then(() => {
    timedOut = !timer.signal.aborted;
    if (timedOut) controller.abort();
  });
  try {
    return await work(controller.signal);
  } catch (error) {
    throw timedOut ? TIMED_OUT : error;
  } finally {
    timer.abort(OVER);
    outer.removeEventListener("abort", onAbort);
  }
}
