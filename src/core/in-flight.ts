/** A claimed event. */
export interface Claim {
  /** The run that claimed it. */
  readonly run: number;
  /** Identifies the lane that claimed it. */
  readonly owner: object;
  readonly event: { readonly id: string; readonly key: string | null };
}

/**
 * Which ids must be dropped from the pages of the open run.
 *
 * A run reads from one snapshot, so it also returns rows that were claimed before it began and settled while it is
 * open. Such an event would be delivered twice. The rule: an id that was in flight at any moment since the run began is
 * dropped from the run's pages. A run never returns a row twice, so an id that the open run claimed itself can be
 * forgotten when it is settled; ids of earlier runs linger until the open run ends.
 */
export class InFlightSet<C extends Claim = Claim> {
  readonly #claims = new Map<string, C>();
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
    return this.#claims.has(id) || (this.#lingering.size > 0 && this.#lingering.has(id));
  }

  /** True while the id is in flight. */
  has(id: string): boolean {
    return this.#claims.has(id);
  }

  get(id: string): C | undefined {
    return this.#claims.get(id);
  }

  claims(): IterableIterator<C> {
    return this.#claims.values();
  }

  add(claim: C): void {
    this.#claims.set(claim.event.id, claim);
  }

  /** True when the excluded id belongs to an event of another key: a database that lost it gave its id out again. */
  isReused(id: string, key: string | null, owner: object | undefined): boolean {
    const claim = this.#claims.get(id);
    if (claim === undefined) return this.#lingering.get(id) !== key;
    return claim.owner !== owner || claim.event.key !== key;
  }

  /** The event is settled or handed back. The claim must be in the set. */
  remove({ event: { id, key }, run }: C): void {
    this.#claims.delete(id);
    if (this.#openRun !== null && run !== this.#openRun) this.#lingering.set(id, key);
  }

  get size(): number {
    return this.#claims.size;
  }
}
