import type { Clock } from "../../core/clock.ts";

/** Bound for the keys kept; beyond it all are logged as new. */
const KEPT_MAX = 10_000;

/** Lets the first of many equal messages pass, then one per interval with the number of those suppressed. */
export class RepeatLimiter {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #seen = new Map<string, { loggedMs: number; suppressed: number }>();

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  /** Null: suppress this one. Otherwise log it; the number says how many were suppressed since the last one. */
  count(key: string): number | null {
    const nowMs = this.#clock.monotonicMs();
    const seen = this.#seen.get(key);
    if (seen !== undefined && nowMs - seen.loggedMs < this.#everyMs) {
      seen.suppressed += 1;
      return null;
    }
    if (this.#seen.size >= KEPT_MAX) this.#seen.clear();
    this.#seen.set(key, { loggedMs: nowMs, suppressed: 0 });
    return seen?.suppressed ?? 0;
  }

  /** Treats the keys with this prefix as new. */
  forget(prefix: string): void {
    for (const key of this.#seen.keys()) if (key.startsWith(prefix)) this.#seen.delete(key);
  }
}
