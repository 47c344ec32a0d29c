import type { Clock } from "../core/clock.ts";
import type { LogFigure } from "../operations/log-figures.ts";

const CACHED_MS = 15_000;

/** What is known of the logs, asked for rarely and never waited for longer than the caller wants to. */
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

  async figures(patienceMs: number): Promise<readonly LogFigure[]> {
    if (this.#clock.monotonicMs() - this.#askedMs >= CACHED_MS) {
      this.#asking ??= this.#renew().finally(() => {
        this.#asking = null;
      });
    }
    if (this.#asking !== null) {
      const patience = new AbortController();
      await Promise.race([this.#asking, this.#clock.sleep(patienceMs, patience.signal)]);
      patience.abort();
    }
    return this.#last;
  }

  /** A database that gives no answer is told of elsewhere. */
  async #renew(): Promise<void> {
    this.#last = await this.#ask().catch(() => this.#last);
    this.#askedMs = this.#clock.monotonicMs();
  }
}
