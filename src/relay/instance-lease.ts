import type { Clock } from "../core/clock.ts";
import type { Timing } from "../core/limits.ts";

/**
 * When wall and monotonic time drift apart by this much, the machine was suspended: others may own our lanes by now.
 */
const DRIFT_MAX_MS = 1_000;

/** Both clocks at the moment at which a renewal is sent. */
interface SentAt {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Reads both clocks. Call it before the renewal is sent, never after. */
export function sentAt(clock: Clock): SentAt {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/**
 * The time for which this process counts as alive. It ends for good when the lease is not renewed in time, by the clock
 * of this process and a margin early: a publish must never outlive the lease that the database sees, because another
 * instance may then deliver the same events. Everything done under a lease ends with it.
 */
export class InstanceLease {
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

  /** Aborts when the lease ends. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Why the lease ended; empty while it lasts. */
  get reason(): string {
    return this.#reason;
  }

  /**
   * A renewal sent at this time succeeded. The database counts from a later moment, so our deadline is the earlier one.
   */
  renewed(sent: SentAt): void {
    this.#deadlineMs = sent.monotonicMs + this.#timing.leaseMs - this.#timing.leaseMarginMs;
    // The drift at the time of sending: the machine may have been suspended while the answer was on its way.
    this.#driftMs = sent.wallMs - sent.monotonicMs;
  }

  /** Checks the clocks each time it is called, because a suspended machine runs no timer. */
  isAlive(): boolean {
    if (this.#lost.signal.aborted) return false;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#deadlineMs) this.lose("the lease was not renewed in time");
    else if (Math.abs(this.#clock.wallMs() - nowMs - this.#driftMs) >= DRIFT_MAX_MS) {
      this.lose("the clock jumped: this machine was suspended or its time was changed");
    }
    return !this.#lost.signal.aborted;
  }

  /** Ends the lease. The first reason counts. */
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
