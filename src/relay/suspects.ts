/**
 * Events that a crashing lane stores before it sends them, so that the next owner knows which events were being sent.
 * The note counts as one crash per ownership of the lane, however often the event is sent.
 */
export class Suspects {
  readonly #underWay = new Set<string>();
  /** Held events that were handed back. Their note stays in their hold; other notes go with the hand-back. */
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

  /** The ids of all events with a note of this lane. */
  ids(): string[] {
    return [...this.#underWay, ...this.#noted];
  }

  /** The lane's claim of the event ended, with whatever outcome. */
  finished(id: string): void {
    this.#underWay.delete(id);
  }

  /** The event's failure is durable, which has replaced the note. */
  failed(id: string): void {
    this.#noted.delete(id);
  }

  /** True when the event has a note, which must be deleted when its row is marked. */
  delivered(id: string): boolean {
    return this.#noted.delete(id) || this.#underWay.has(id);
  }
}
