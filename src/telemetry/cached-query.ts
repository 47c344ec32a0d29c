import type { Clock } from "../core/clock.ts";

interface Known<T> {
  readonly value: T;
  /** Monotonic time of the answer. */
  readonly atMs: number;
}

interface Answer<T> {
  /** The last answer, however old; null before the first. */
  readonly known: Known<T> | null;
  /** Why the last query failed; null if it succeeded. */
  readonly problem: unknown;
  /** The wait ended before the query did. */
  readonly isLate: boolean;
}

/** A slow query may take at most this share of the time. */
const SHARE_MAX = 1 / 20;

/**
 * A shared, cached query: runs once at a time, not again while its answer is fresh, less often if it is slow, and never
 * makes a caller wait longer than it allows.
 */
export class CachedQuery<T> {
  readonly #clock: Clock;
  readonly #ask: () => Promise<T>;
  readonly #freshForMs: number;
  #known: Known<T> | null = null;
  #problem: unknown = null;
  #nextMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | null = null;

  constructor(clock: Clock, freshForMs: number, ask: () => Promise<T>) {
    this.#clock = clock;
    this.#freshForMs = freshForMs;
    this.#ask = ask;
  }

  async answer(waitMs: number): Promise<Answer<T>> {
    if (this.#clock.monotonicMs() >= this.#nextMs) {
      this.#asking ??= this.#question().finally(() => {
        this.#asking = null;
      });
    }
    if (this.#asking === null) return { known: this.#known, problem: this.#problem, isLate: false };
    const timeout = new AbortController();
    const timedOut = this.#clock.sleep(waitMs, timeout.signal).then(() => "timeout" as const);
    const ended = await Promise.race([this.#asking, timedOut]);
    timeout.abort();
    return { known: this.#known, problem: this.#problem, isLate: ended === "timeout" };
  }

  async #question(): Promise<void> {
    const askedMs = this.#clock.monotonicMs();
    try {
      const value = await this.#ask();
      const atMs = this.#clock.monotonicMs();
      this.#known = { value, atMs };
      this.#problem = null;
      this.#nextMs = atMs + Math.max(this.#freshForMs, (atMs - askedMs) / SHARE_MAX);
    } catch (error) {
      this.#problem = error;
      this.#nextMs = this.#clock.monotonicMs() + this.#freshForMs;
    }
  }
}
