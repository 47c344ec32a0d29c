import type { Clock } from "../core/clock.ts";

/** Nobody asks why; without a reason the runtime makes up an error with a stack, each time. */
const WOKEN = "woken";

/** A pause that can be cut short. A wake that comes between two pauses cuts the next one. */
export class Waker {
  readonly #clock: Clock;
  #woken = false;
  #pause: AbortController | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

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
