import type { AnswerTimes, OpenRequest } from "../core/answer-times.ts";
import type { Clock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import type { Outcome } from "../core/outcome.ts";
import type { RequestTimer } from "../ports/publisher.ts";

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

/**
 * Measures how long the destination takes to answer a publish: as a whole, or per request where the publisher times its
 * requests itself.
 */
export class PublishClock {
  /** For a publisher that times its requests. */
  readonly requests: RequestTimer | undefined;
  readonly #times: AnswerTimes;
  readonly #whole: OpenRequest | null;
  #isAnswered = false;

  constructor(times: AnswerTimes, startedMs: number, timesRequests: boolean) {
    this.#times = times;
    this.requests = timesRequests ? timerOf(times) : undefined;
    this.#whole = timesRequests ? null : times.begin(startedMs);
  }

  /** An outcome arrived. A destination that cannot be reached has not answered. */
  answered(outcome: Outcome): void {
    if (this.#isAnswered || this.#whole === null) return;
    const { kind } = outcome;
    this.#isAnswered =
      kind === "delivered" || kind === "rejected" || (kind === "retry" && outcome.scope !== "destination");
  }

  /** The publish is over. A publish that timed out counts with the time that it waited. */
  end(error: unknown): void {
    if (this.#whole !== null) this.#times.end(this.#whole, this.#isAnswered || error === TIMED_OUT);
  }
}

function timerOf(times: AnswerTimes): RequestTimer {
  return () => {
    const request = times.begin();
    return (isAnswered) => times.end(request, isAnswered);
  };
}
