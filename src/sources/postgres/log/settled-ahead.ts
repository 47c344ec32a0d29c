import type { LogKind, LogPosition } from "./log-kind.ts";

/**
 * Rows beyond a checkpoint's position that it lists as settled, until they are read. A checkpoint written before that
 * lists them again: the next owner has not met them either.
 */
export class SettledAhead<Segment> {
  readonly #kind: Pick<LogKind<Segment>, "orderOf" | "readsInOrder">;
  readonly #rows: Map<bigint, LogPosition<Segment>>;

  constructor(kind: Pick<LogKind<Segment>, "orderOf" | "readsInOrder">, ahead: readonly LogPosition<Segment>[]) {
    this.#kind = kind;
    this.#rows = new Map(ahead.map((row) => [kind.orderOf(row), row]));
  }

  /** True for such a row, once: from then on its reader knows it. */
  meet(row: LogPosition<Segment>): boolean {
    return this.#rows.size > 0 && this.#rows.delete(this.#kind.orderOf(row));
  }

  rest(): readonly LogPosition<Segment>[] {
    return this.#rows.size === 0 ? [] : [...this.#rows.values()];
  }

  /**
   * The lane reads on from here. In an ordered log, listed rows before this position that were not met no longer exist.
   */
  reached(place: LogPosition<Segment>): void {
    if (this.#rows.size === 0 || this.#kind.readsInOrder !== true) return;
    const here = this.#kind.orderOf(place);
    for (const order of this.#rows.keys()) if (order <= here) this.#rows.delete(order);
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0;
  }

  /** The reading reached the end of the log: rows that it did not meet no longer exist. */
  clear(): void {
    this.#rows.clear();
  }
}
