/** Finds rows whose flags contradict each other; see `RowState.strays`. */
export class StrayWatch {
  readonly #look: () => Promise<boolean>;
  #first: Promise<void> | null = null;
  #isLooking = false;
  #dueMs = 0;
  #found = false;

  /** `look` asks the database; it may be slow where no index helps. */
  constructor(look: () => Promise<boolean>) {
    this.#look = look;
  }

  /**
   * Whether runs have to read by all flags for now. Only the first look is waited for: later ones go on beside the
   * delivery, and so rarely that they take at most a hundredth of the time, however large the table is. A look that
   * fails (too slow) counts as having found nothing.
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
