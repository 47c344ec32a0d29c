import type { Clock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import type { LambdaContext } from "./lambda-events.ts";

/** Reserved for recording the last outcomes. */
const WRITING_SHARE = 0.25;
const WRITING_MS_MAX = 5_000;
/** Reserved for the response. */
const ANSWER_SHARE = 0.05;
const ANSWER_MS_MAX = 500;

/** The time that this call has left. AWS kills the function at its timeout, whatever it is doing. */
export class TimeLeft {
  readonly #clock: Clock;
  readonly #publishMs: number;
  readonly #sendUntilMs: number;
  readonly #writeUntilMs: number;
  #hasSent = false;

  /** `publishMs`: the limit of one publish. */
  constructor(clock: Clock, context: LambdaContext, publishMs: number) {
    const leftMs = context.getRemainingTimeInMillis();
    const now = clock.monotonicMs();
    this.#clock = clock;
    this.#publishMs = publishMs;
    this.#sendUntilMs = now + leftMs - Math.min(WRITING_MS_MAX, leftMs * WRITING_SHARE);
    this.#writeUntilMs = now + leftMs - Math.min(ANSWER_MS_MAX, leftMs * ANSWER_SHARE);
  }

  /**
   * Whether a publish may start. One that starts too late would be cut off, with an unknown outcome. The first one
   * always starts, or a function with a short timeout would never send anything.
   */
  get canSend(): boolean {
    const leftMs = this.#sendUntilMs - this.#clock.monotonicMs();
    return this.#hasSent ? leftMs >= this.#publishMs : leftMs > 0;
  }

  /** Starts a publish; returns the time after which to abort it. */
  beginSend(): number {
    this.#hasSent = true;
    return Math.max(0, Math.min(this.#publishMs, this.#sendUntilMs - this.#clock.monotonicMs()));
  }

  /** The time left for writes. */
  get writeMs(): number {
    return Math.max(0, this.#writeUntilMs - this.#clock.monotonicMs());
  }

  /** Throws when the work does not finish in time, and no longer waits for it. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    const over = new AbortController();
    const late = this.#clock.sleep(this.writeMs, over.signal).then(() => {
      throw new RelayError(
        "DATABASE_BUSY",
        "DynamoDB did not answer before the end of this call: raise the function's timeout if this happens often.",
      );
    });
    late.catch(() => {});
    try {
      return await Promise.race([work, late]);
    } finally {
      work.catch(() => {});
      over.abort();
    }
  }
}
