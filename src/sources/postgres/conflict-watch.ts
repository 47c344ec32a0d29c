/** Finds rows whose flags contradict each other; see `RowState.conflicts`. */
export class ConflictWatch {
  readonly #look: () => Promise<boolean>;
  #first: Promise<void> | null = null;
  #isLooking = false;
  #dueMs = 0;
  #found = false;

  /** `look` queries the database; it may be slow without an index. */
  constructor(look: () => Promise<boolean>) {
    this.#look = look;
  }

  /**
   * Whether runs must read by all flags for now. Only the first check is awaited. Later checks run beside the delivery,
   * and so rarely that they take at most a hundredth of the time, however large the table is. A check that fails (too
   * slow) counts as having found nothing.
   */
  async found(): Promise<boolean> {
    if (this.#first === null) this.#first = this.#lookAgain();
    else if (!this.#isLooking && performance.now() >= this.#dueMs) void this.#lookAgain();
    await this.#first;
    return this.#found;
  }

  async #lookAgain(): Promise<void> {
    this.#isLooking = true;
    const startMs = performance.now();
    this.#found = await this.#look().catch(() => false);
    const endMs = performance.now();
    this.#dueMs = endMs + Math.max(LOOK_EVERY_MS, (endMs - startMs) * 100);
    this.#isLooking = false;
  }
}

const LOOK_EVERY_MS = 10_000;
