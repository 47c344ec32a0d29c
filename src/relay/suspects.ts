/**
 * Events that a lane writes down before it sends them, because it keeps crashing: whoever takes it over knows what was
 * being sent. The note counts as one crash for as long as the lane is owned, however often the event is sent.
 */
export class Suspects {
  readonly #underWay = new Set<string>();
  /** Heads that were handed back: unlike that of others, their note stays. */
  readonly #noted = new Set<string>();

  has(id: string): boolean {
    return this.#underWay.has(id);
  }

  isNoted(id: string): boolean {
    return this.#underWay.has(id) || this.#noted.has(id);
  }

  add(id: string, isHead: boolean): void {
    this.#underWay.add(id);
    if (isHead) this.#noted.add(id);
  }

  /** All that have a note of this lane's. */
  ids(): string[] {
    return [...this.#underWay, ...this.#noted];
  }

  /** It is no longer in the lane's hands, whatever became of it. */
  finished(id: string): void {
    this.#underWay.delete(id);
  }

  /** Its failure is written, and the note is gone with that. */
  failed(id: string): void {
    this.#noted.delete(id);
  }

  /** Whether there is a note that has to go with its row. */
  delivered(id: string): boolean {
    return this.#noted.delete(id) || this.#underWay.has(id);
  }
}
