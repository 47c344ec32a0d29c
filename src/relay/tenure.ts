import type { Clock } from "../core/clock.ts";
import type { Timing } from "../core/limits.ts";

/** Wall and monotonic time drifting apart by this much means that the machine slept: others may have taken over. */
const DRIFT_MAX_MS = 1_000;

/** The clocks at the moment at which a renewal is sent. */
interface SentAt {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function sentAt(clock: Clock): SentAt {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/**
 * The time during which this process is alive in the eyes of the others. It ends for good when the lease is not
 * renewed in time, by the clock of this process and a margin early; everything done under it ends with it.
 */
export class Tenure {
  readonly id: string;
  readonly #clock: Clock;
  readonly #timing: Timing;
  readonly #lost = new AbortController();
  #deadlineMs = 0;
  #driftMs = 0;
  #reason = "";

  constructor(id: string, clock: Clock, timing: Timing, sent: SentAt) {
    this.id = id;
    this.#clock = clock;
    this.#timing = timing;
    this.renewed(sent);
    void this.#watch();
  }

  /** Aborts when the tenure is over. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get reason(): string {
    return this.#reason;
  }

  /** A renewal that was sent then succeeded: the database counts from a moment after it. */
  renewed(sent: SentAt): void {
    this.#deadlineMs = sent.monotonicMs + this.#timing.leaseMs - this.#timing.leaseMarginMs;
    // As of then: the machine may have slept while the answer was on its way.
    this.#driftMs = sent.wallMs - sent.monotonicMs;
  }

  isAlive(): boolean {
    if (this.#lost.signal.aborted) return false;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#deadlineMs) this.lose("the lease was not renewed in time");
    else if (Math.abs(this.#clock.wallMs() - nowMs - this.#driftMs) >= DRIFT_MAX_MS) {
      this.lose("the clock jumped: this machine was suspended or its time was changed");
    }
    return !this.#lost.signal.aborted;
  }

  lose(reason: string): void {
    if (this.#lost.signal.aborted) return;
    this.#reason = reason;
    this.#lost.abort();
  }

  async #watch(): Promise<void> {
    while (this.isAlive()) {
      await this.#clock.sleep(this.#deadlineMs - this.#clock.monotonicMs(), this.#lost.signal);
    }
  }
}
