import type { Clock } from "../core/clock.ts";
import { RateLimit } from "../core/rate-limit.ts";

interface RateGateOptions {
  readonly clock: Clock;
  /** Ends all waiting. */
  readonly signal: AbortSignal;
  /** Called when there are tokens again, after a caller got none. */
  readonly wake: () => void;
}

/** A rate limit that can change while it is in use. Without a limit everything passes. */
export class RateGate {
  readonly #options: RateGateOptions;
  #perSecond: number | null = null;
  #rate: RateLimit | null = null;
  #isWaiting = false;

  constructor(options: RateGateOptions) {
    this.#options = options;
  }

  /** Sets the limit in events per second; null removes it. Returns false when it was the same before. */
  limitTo(perSecond: number | null): boolean {
    if (perSecond === this.#perSecond) return false;
    this.#perSecond = perSecond;
    this.#rate = perSecond === null ? null : new RateLimit(perSecond);
    this.#options.wake();
    return true;
  }

  /** How many of the wanted events may be sent now. A caller that gets none is woken when there are tokens again. */
  allowance(wanted: number): number {
    if (this.#rate === null || wanted === 0) return wanted;
    const { clock, signal, wake } = this.#options;
    const granted = this.#rate.take(wanted, clock.monotonicMs());
    if (granted === 0 && !this.#isWaiting) {
      this.#isWaiting = true;
      void clock.sleep(this.#rate.waitMs(), signal).then(() => {
        this.#isWaiting = false;
        if (!signal.aborted) wake();
      });
    }
    return granted;
  }

  /** Returns the part of an allowance that was not sent. */
  giveBack(count: number): void {
    this.#rate?.giveBack(count);
  }
}
