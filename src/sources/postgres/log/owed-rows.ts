import type { LogKind, LogPlace } from "./log-kind.ts";

/**
 * Rows that a checkpoint calls settled behind its place, until the reading comes by. Whoever writes a checkpoint before
 * that writes them down again: the next owner has not met them either.
 */
export class OwedRows<Segment> {
  readonly #kind: Pick<LogKind<Segment>, "orderOf" | "readsInOrder">;
  readonly #rows: Map<bigint, LogPlace<Segment>>;

  constructor(kind: Pick<LogKind<Segment>, "orderOf" | "readsInOrder">, ahead: readonly LogPlace<Segment>[]) {
    this.#kind = kind;
    this.#rows = new Map(ahead.map((row) => [kind.orderOf(row), row]));
  }

  /** True for such a row, once: from then on whoever read it knows of it. */
  meet(row: LogPlace<Segment>): boolean {
    return this.#rows.size > 0 && this.#rows.delete(this.#kind.orderOf(row));
  }

  rest(): readonly LogPlace<Segment>[] {
    return this.#rows.size === 0 ? [] : [...this.#rows.values()];
  }

  /** The reading stands here: where it goes in order, what it did not meet before is not there any more. */
  reached(place: LogPlace<Segment>): void {
    if (this.#rows.size === 0 || this.#kind.readsInOrder !== true) return;
    const here = this.#kind.orderOf(place);
    for (const order of this.#rows.keys()) if (order <= here) this.#rows.delete(order);
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0;
  }

  /** The reading came to the end of the log: what it did not meet is not there any more. */
  clear(): void {
    this.#rows.clear();
  }
}
