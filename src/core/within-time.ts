import { type Clock, systemClock } from "./clock.ts";

const LATE = Symbol("late");

/** The result of the work. Rejects with the error of `late` when the time is over or the signal aborts first. */
export async function withinTime<T>(
  work: Promise<T>,
  ms: number,
  signal: AbortSignal,
  late: () => Error,
  clock: Clock = systemClock,
): Promise<T> {
  // The work may fail later, when no one awaits it: that must not become an unhandled rejection.
  work.catch(() => {});
  const answered = new AbortController();
  try {
    const timeout = clock.sleep(ms, AbortSignal.any([signal, answered.signal]));
    const first = await Promise.race([work, timeout.then(() => LATE)]);
    if (first === LATE) throw late();
    return first as T;
  } finally {
    answered.abort();
  }
}

/** What the work gives; rejects with what `givenUp` returns as soon as the signal aborts. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal, givenUp: () => unknown): Promise<T> {
  // It may fail later, when its result is not awaited any more.
  work.catch(() => {});
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(givenUp());
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
