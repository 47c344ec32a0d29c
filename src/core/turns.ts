/** Lets at most so many work at a time; the others wait in the order in which they came. */
export class Turns {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False when the signal aborts before it is this one's turn. Whoever got one gives it back. */
  async take(signal: AbortSignal): Promise<boolean> {
    while (this.#taken >= this.#max && !signal.aborted) await this.#next(signal);
    if (signal.aborted) return false;
    this.#taken += 1;
    return true;
  }

  giveBack(): void {
    this.#taken -= 1;
    this.#waiting.shift()?.();
  }

  /** Resolves when a turn was given back, or the signal aborts. */
  #next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener("abort", done);
        const at = this.#waiting.indexOf(done);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve();
      };
      signal.addEventListener("abort", done, { once: true });
      this.#waiting.push(done);
    });
  }
}
