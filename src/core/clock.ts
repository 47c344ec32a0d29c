import { randomInt, randomUUID } from "node:crypto";

/**
 * Time and timers. Clock and randomness are injected everywhere, so that the same engine runs on virtual time in the
 * simulator. In core, ports and relay only this file may use the real ones.
 */
export interface Clock {
  /** Wall time in ms, for people. The engine uses it for one decision only: to detect that the clock jumped. */
  wallMs(): number;
  /** Monotonic time in ms. All deadlines in the process use it. */
  monotonicMs(): number;
  /** Resolves after `ms`, never earlier, or as soon as the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The source of randomness. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  uuid(): string;
}

/** Longer timers overflow in Node and fire at once. */
const SLEEP_MAX_MS = 2_147_483_647;

/**
 * Node's timers count whole milliseconds and may fire this much too early. A sleep until a moment must end after it.
 */
const EARLY_MS = 1;

/** The real clock. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(Math.max(0, Math.ceil(ms) + EARLY_MS), SLEEP_MAX_MS));
      signal?.addEventListener("abort", done, { once: true });
    }),
};

/** Cryptographically secure randomness. */
export const systemRandom: Random = {
  next: () => randomInt(0, 2 ** 47) / 2 ** 47,
  uuid: () => randomUUID(),
};

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
