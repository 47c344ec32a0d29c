import type { Clock } from "../core/clock.ts";
import { RelayError } from "../core/errors.ts";
import type { LambdaContext } from "./lambda-events.ts";

/** Kept for writing down what became of the last intents. */
const WRITING_SHARE = 0.25;
const WRITING_MS_MAX = 5_000;
/** Kept for the answer itself. */
const ANSWER_SHARE = 0.05;
const ANSWER_MS_MAX = 500;

/** How long this call of the function still has: AWS ends it in the middle of whatever it does. */
export class TimeLeft {
  readonly #clock: Clock;
  readonly #publishMs: number;
  readonly #sendUntilMs: number;
  readonly #writeUntilMs: number;
  #hasSent = false;

  /** `publishMs`: so long one publish may take. */
  constructor(clock: Clock, context: LambdaContext, publishMs: number) {
    const leftMs = context.getRemainingTimeInMillis();
    const now = clock.monotonicMs();
    this.#clock = clock;
    this.#publishMs = publishMs;
    this.#sendUntilMs = now + leftMs - Math.min(WRITING_MS_MAX, leftMs * WRITING_SHARE);
    this.#writeUntilMs = now + leftMs - Math.min(ANSWER_MS_MAX, leftMs * ANSWER_SHARE);
  }

  /**
   * Whether a publish may begin. One that begins too late would be cut off in the middle, and nobody would know what
   * arrived; but the first one is tried however short the time, or nothing would ever go.
   */
  get canSend(): boolean {
    const leftMs = this.#sendUntilMs - this.#clock.monotonicMs();
    return this.#hasSent ? leftMs >= this.#publishMs : leftMs > 0;
  }

  /** A publish begins: it is given up after this time. */
  beginSend(): number {
    this.#hasSent = true;
    return Math.max(0, Math.min(this.#publishMs, this.#sendUntilMs - this.#clock.monotonicMs()));
  }

  /** Until nothing can be written down any more. */
  get writeMs(): number {
    return Math.max(0, this.#writeUntilMs - this.#clock.monotonicMs());
  }

  /** Throws when the work is not done before the end; nobody waits for it then. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    const over = new AbortController();
    const late = this.#clock.sleep(this.writeMs, over.signal).then(() => {
      throw new RelayError("DATABASE_BUSY", "DynamoDB did not answer before the time of this call was over.");
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
