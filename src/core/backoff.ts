/** The first pause of a retry loop, and the longest. */
export interface PauseRange {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** After this many doublings every pause is the longest one. A bound, because `0 * Infinity` is NaN. */
const DOUBLINGS_MAX = 40;

/** The pause after a failure: it doubles with each failure before this one. */
export function backoffMs({ firstMs, lastMs }: PauseRange, failuresBefore: number): number {
  return Math.min(lastMs, firstMs * 2 ** Math.min(failuresBefore, DOUBLINGS_MAX));
}

/** The pauses of one retry loop. */
export class Backoff {
  readonly #range: PauseRange;
  #failures = 0;

  constructor(range: PauseRange) {
    this.#range = range;
  }

  /** The pause after one more failure. */
  nextMs(): number {
    const pauseMs = backoffMs(this.#range, this.#failures);
    this.#failures += 1;
    return pauseMs;
  }

  /** After a success: the next pause is the first one again. */
  reset(): void {
    this.#failures = 0;
  }
}
