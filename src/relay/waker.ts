import type { Clock } from "../core/clock.ts";

/** The reason of the abort. No one reads it, but without one the runtime creates an error with a stack each time. */
const WOKEN = "woken";

/** A pause that can be cut short. A wake-up between two pauses ends the next one at once, so that none is missed. */
export class Waker {
  readonly #clock: Clock;
  #woken = false;
  #pause: AbortController | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the pause in progress, or else the next one. */
  wake(): void {
    this.#woken = true;
    this.#pause?.abort(WOKEN);
  }

  async pause(ms: number): Promise<void> {
    if (!this.#woken) {
      this.#pause = new AbortController();
      await this.#clock.sleep(ms, this.#pause.signal);
      this.#pause = null;
    }
    this.#woken = false;
  }
}
