import type { Clock } from "../core/clock.ts";

interface Known<T> {
  readonly value: T;
  /** Monotonic, when it was answered. */
  readonly atMs: number;
}

interface Answer<T> {
  /** What was known last, however old; null before the first answer. */
  readonly known: Known<T> | null;
  /** Why the last question failed; null when it did not. */
  readonly problem: unknown;
  /** The patience was over before the answer came. */
  readonly isLate: boolean;
}

/** So much of the time may be spent on a question that takes long. */
const SHARE_MAX = 1 / 20;

/**
 * The answer to a question that many ask: put once at a time, not again while the last answer is good, rarer if it takes
 * long, and never waited for longer than the caller wants to.
 */
export class Remembered<T> {
  readonly #clock: Clock;
  readonly #ask: () => Promise<T>;
  readonly #goodForMs: number;
  #known: Known<T> | null = null;
  #problem: unknown = null;
  #nextMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | null = null;

  constructor(clock: Clock, goodForMs: number, ask: () => Promise<T>) {
    this.#clock = clock;
    this.#goodForMs = goodForMs;
    this.#ask = ask;
  }

  async answer(patienceMs: number): Promise<Answer<T>> {
    if (this.#clock.monotonicMs() >= this.#nextMs) {
      this.#asking ??= this.#question().finally(() => {
        this.#asking = null;
      });
    }
    if (this.#asking === null) return { known: this.#known, problem: this.#problem, isLate: false };
    const patience = new AbortController();
    const silence = this.#clock.sleep(patienceMs, patience.signal).then(() => "silent" as const);
    const ended = await Promise.race([this.#asking, silence]);
    patience.abort();
    return { known: this.#known, problem: this.#problem, isLate: ended === "silent" };
  }

  async #question(): Promise<void> {
    const askedMs = this.#clock.monotonicMs();
    try {
      const value = await this.#ask();
      const atMs = this.#clock.monotonicMs();
      this.#known = { value, atMs };
      this.#problem = null;
      this.#nextMs = atMs + Math.max(this.#goodForMs, (atMs - askedMs) / SHARE_MAX);
    } catch (error) {
      this.#problem = error;
      this.#nextMs = this.#clock.monotonicMs() + this.#goodForMs;
    }
  }
}
