import type { Clock } from "../core/clock.ts";
import { RateLimit } from "../core/rate-limit.ts";

interface RateGateOptions {
  readonly clock: Clock;
  /** Ends the waiting for ever. */
  readonly signal: AbortSignal;
  /** Called when there is room again for whoever got none. */
  readonly wake: () => void;
}

/** A rate that may change while it is used. Without one, everything passes. */
export class RateGate {
  readonly #options: RateGateOptions;
  #perSecond: number | null = null;
  #rate: RateLimit | null = null;
  #isWaiting = false;

  constructor(options: RateGateOptions) {
    this.#options = options;
  }

  /** Events per second from now on; null: as many as come. False when it was so already. */
  limitTo(perSecond: number | null): boolean {
    if (perSecond === this.#perSecond) return false;
    this.#perSecond = perSecond;
    this.#rate = perSecond === null ? null : new RateLimit(perSecond);
    this.#options.wake();
    return true;
  }

  /** How many of so many events may go now. Whoever gets none is woken when there is room again. */
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

  /** Of an allowance, what was not sent. */
  giveBack(count: number): void {
    this.#rate?.giveBack(count);
  }
}
