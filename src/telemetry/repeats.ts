import type { Clock } from "../core/clock.ts";

/** Beyond these nobody reads them one by one any more. */
const KEPT_MAX = 10_000;

/** Tells the first of many alike, and then one per interval with the number of those in between. */
export class Repeats {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #seen = new Map<string, { toldMs: number; silent: number }>();

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  /** Null: not to be told. Otherwise how many were not told since the last one. */
  count(key: string): number | null {
    const nowMs = this.#clock.monotonicMs();
    const seen = this.#seen.get(key);
    if (seen !== undefined && nowMs - seen.toldMs < this.#everyMs) {
      seen.silent += 1;
      return null;
    }
    if (this.#seen.size >= KEPT_MAX) this.#seen.clear();
    this.#seen.set(key, { toldMs: nowMs, silent: 0 });
    return seen?.silent ?? 0;
  }

  /** All whose key begins like this are news again. */
  forget(beginning: string): void {
    for (const key of this.#seen.keys()) if (key.startsWith(beginning)) this.#seen.delete(key);
  }
}
