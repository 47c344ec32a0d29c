import type { Clock } from "../core/clock.ts";
import type { LogFigure } from "../operations/logs/log-list.ts";

const CACHED_MS = 15_000;

/** Caches the figures of the logs: reads them rarely, and never waits longer than the caller allows. */
export class LogWatch {
  readonly #ask: () => Promise<readonly LogFigure[]>;
  readonly #clock: Clock;
  #last: readonly LogFigure[] = [];
  #askedMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | null = null;

  constructor(ask: () => Promise<readonly LogFigure[]>, clock: Clock) {
    this.#ask = ask;
    this.#clock = clock;
  }

  async figures(waitMs: number): Promise<readonly LogFigure[]> {
    if (this.#clock.monotonicMs() - this.#askedMs >= CACHED_MS) {
      this.#asking ??= this.#renew().finally(() => {
        this.#asking = null;
      });
    }
    if (this.#asking !== null) {
      const timeout = new AbortController();
      await Promise.race([this.#asking, this.#clock.sleep(waitMs, timeout.signal)]);
      timeout.abort();
    }
    return this.#last;
  }

  /** Keeps the last figures on errors: the sources report a database that does not answer. */
  async #renew(): Promise<void> {
    this.#last = await this.#ask().catch(() => this.#last);
    this.#askedMs = this.#clock.monotonicMs();
  }
}
