/**
 * Which ids must be dropped from the pages of the open run.
 *
 * A run reads from one snapshot, so it also shows rows that were claimed before it began and settled while it is
 * open. Such an id would be delivered twice. The rule: whatever was in flight at any moment since the run began is
 * dropped from its pages. A run never shows a row twice, so ids that the open run claimed itself can be forgotten at
 * their settle; those of earlier runs linger until the open run ends.
 */
export class InFlightSet {
  readonly #runOf = new Map<string, number>();
  readonly #lingering = new Set<string>();
  #openRun: number | null = null;

  /** To be called before the run's snapshot can have been taken. */
  beginRun(run: number): void {
    this.#openRun = run;
  }

  endRun(): void {
    this.#openRun = null;
    this.#lingering.clear();
  }

  /** True when the open run must not deliver this id. */
  excludes(id: string): boolean {
    return this.#runOf.has(id) || this.#lingering.has(id);
  }

  /** True while the id is in flight, whatever the open run shows. */
  has(id: string): boolean {
    return this.#runOf.has(id);
  }

  add(id: string, run: number): void {
    this.#runOf.set(id, run);
  }

  remove(id: string): void {
    const run = this.#runOf.get(id);
    if (run === undefined) return;
    this.#runOf.delete(id);
    if (this.#openRun !== null && run !== this.#openRun) this.#lingering.add(id);
  }

  get size(): number {
    return this.#runOf.size;
  }
}
