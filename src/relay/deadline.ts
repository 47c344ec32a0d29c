import type { Clock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";

/** Work that was cut off because its time was over. */
export const TIMED_OUT: unique symbol = Symbol("timed out");

export function noAnswerWithin(destination: string, ms: number): RelayError {
  return new RelayError("PUBLISH_UNKNOWN", `${destination} gave no answer within ${ms} ms.`);
}

/** Nobody asks why; without a reason the runtime makes up an error with a stack, each time. */
const OVER = "over";

/** Whether the work came to its end within this time. It goes on in any case; that it fails is told. */
export async function endsWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  const isLate = clock.sleep(ms, timer.signal).then(() => false);
  try {
    return await Promise.race([work.then(() => true), isLate]);
  } finally {
    timer.abort(OVER);
  }
}

/** What is done about work that does not end although it was told to, so long after its time was over. */
interface Impatience {
  readonly ms: number;
  readonly isStuck: () => void;
}

/** Does the work under a signal that aborts with `outer` or after `ms`; rejects with TIMED_OUT when it was the time. */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  impatience?: Impatience,
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
    if (impatience !== undefined)
      void clock.sleep(impatience.ms, timer.signal).then(() => isOver || impatience.isStuck());
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
