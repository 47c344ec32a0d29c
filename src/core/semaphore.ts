/** Limits how many do something at once. Waiting callers get a permit in the order in which they asked. */
export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(permits: number) {
    this.#free = permits;
  }

  /** True while a caller waits for a permit. */
  get isAwaited(): boolean {
    return this.#waiting.length > 0;
  }

  /** False when the signal aborts first; otherwise the caller holds a permit and must release it. */
  async acquire(signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted) return false;
    if (this.#free > 0) this.#free -= 1;
    else if (!(await this.#permit(signal))) return false;
    if (!signal?.aborted) return true;
    // The permit and the abort came together: the next caller must not miss the permit.
    this.release();
    return false;
  }

  /** Acquires a permit and returns the function that releases it. Releasing twice is legal. */
  async enter(): Promise<() => void> {
    await this.acquire();
    let isInside = true;
    return () => {
      if (isInside) this.release();
      isInside = false;
    };
  }

  /** Hands the permit straight to the caller that waits longest, so that no later caller can take it first. */
  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }

  #permit(signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const granted = () => {
        signal?.removeEventListener("abort", aborted);
        resolve(true);
      };
      const aborted = () => {
        this.#waiting.splice(this.#waiting.indexOf(granted), 1);
        resolve(false);
      };
      signal?.addEventListener("abort", aborted, { once: true });
      this.#waiting.push(granted);
    });
  }
}
