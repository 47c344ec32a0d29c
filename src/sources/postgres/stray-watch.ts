/** Finds rows whose flags contradict each other; see `RowState.strays`. */
export class StrayWatch {
  readonly #look: () => Promise<boolean>;
  #dueMs = Number.NEGATIVE_INFINITY;
  #found = false;

  /** `look` asks the database; it may be slow where no index helps. */
  constructor(look: () => Promise<boolean>) {
    this.#look = look;
  }

  /**
   * Whether runs have to read by all flags for now. Looks again so rarely that it takes at most a hundredth of the
   * time, however large the table is; a look that fails (too slow) counts as having found nothing.
   */
  async found(): Promise<boolean> {
    const startMs = performance.now();
    if (startMs < this.#dueMs) return this.#found;
    this.#found = await this.#look().catch(() => false);
    const endMs = performance.now();
    this.#dueMs = endMs + Math.max(LOOK_EVERY_MS, (endMs - startMs) * 100);
    return this.#found;
  }
}

const LOOK_EVERY_MS = 10_000;
