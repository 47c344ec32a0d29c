/**
 * Which ids must be dropped from the pages of the open run.
 *
 * A run reads from one snapshot, so it also returns rows that were claimed before it began and settled while it is
 * open. Such an event would be delivered twice. The rule: an id that was in flight at any moment since the run began is
 * dropped from the run's pages. A run never returns a row twice, so an id that the open run claimed itself can be
 * forgotten when it is settled; ids of earlier runs linger until the open run ends.
 */
export class InFlightSet {
  readonly #runOf = new Map<string, number>();
  /** With their keys. */
  readonly #lingering = new Map<string, string | null>();
  #openRun: number | null = null;

  /**
   * Must be called before the run's snapshot is taken: otherwise an id that is settled in between would be forgotten.
   */
  beginRun(run: number): void {
    this.#openRun = run;
  }

  /** The open run will return no more pages. */
  endRun(): void {
    this.#openRun = null;
    this.#lingering.clear();
  }

  /** True when the open run must not deliver this id. */
  excludes(id: string): boolean {
    return this.#runOf.has(id) || this.#lingering.has(id);
  }

  /** True while the id is in flight. */
  has(id: string): boolean {
    return this.#runOf.has(id);
  }

  /** The event is claimed by this run. */
  add(id: string, run: number): void {
    this.#runOf.set(id, run);
  }

  /** True when the excluded id belongs to an event of another key: a database that lost it gave its id out again. */
  isReused(id: string, key: string | null, keyInFlight: () => string | null | undefined): boolean {
    const before = this.#runOf.has(id) ? keyInFlight() : this.#lingering.get(id);
    return before !== key;
  }

  /** The event is settled or handed back. */
  remove(id: string, key: string | null): void {
    const run = this.#runOf.get(id);
    if (run === undefined) return;
    this.#runOf.delete(id);
    if (this.#openRun !== null && run !== this.#openRun) this.#lingering.set(id, key);
  }

  get size(): number {
    return this.#runOf.size;
  }
}
