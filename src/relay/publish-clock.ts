import type { AnswerTimes, OpenRequest } from "../core/answer-times.ts";
import type { Outcome } from "../core/outcome.ts";
import type { RequestTimer } from "../ports/publisher.ts";
import { TIMED_OUT } from "./deadline.ts";

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
