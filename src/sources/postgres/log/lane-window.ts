import type { LogPlace, LogRow } from "./log-kind.ts";

/** A row that was read and that the checkpoint has not passed yet. */
export interface WindowRow<Segment> extends LogRow<Segment> {
  /** Delivered, parked, or known to be delivered: nothing more is to be done for it. */
  isSettled: boolean;
}

/**
 * What a lane has read and not yet put behind it, in the order of reading. The checkpoint is the place before the first
 * row that is not settled; what is settled behind that one must be remembered by itself.
 */
export class LaneWindow<Segment> {
  /** Where reading goes on. */
  head: LogPlace<Segment>;
  readonly #rows: WindowRow<Segment>[] = [];
  readonly #byId = new Map<string, WindowRow<Segment>>();
  /** Rows before this one are settled and gone; they are cut off now and then. */
  #first = 0;

  constructor(head: LogPlace<Segment>) {
    this.head = head;
  }

  /** Undefined when the row is not here, or settled. */
  waiting(id: string): WindowRow<Segment> | undefined {
    const row = this.#byId.get(id);
    return row === undefined || row.isSettled ? undefined : row;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** Settled or not. */
  get(id: string): LogPlace<Segment> | undefined {
    return this.#byId.get(id);
  }

  add(row: LogRow<Segment>, isSettled = false): WindowRow<Segment> {
    const { event, mark, segment } = row;
    const kept = { event, mark, segment, isSettled };
    this.#rows.push(kept);
    this.#byId.set(event.id, kept);
    return kept;
  }

  /** Rows that wait, in the order of reading. */
  allWaiting(): WindowRow<Segment>[] {
    const waiting: WindowRow<Segment>[] = [];
    for (let at = this.#first; at < this.#rows.length; at++) {
      const row = this.#rows[at]!;
      if (!row.isSettled) waiting.push(row);
    }
    return waiting;
  }

  /** Everything before it is settled. */
  get low(): LogPlace<Segment> {
    const first = this.#firstWaiting();
    if (first === this.#rows.length) return this.head;
    const { mark, segment } = this.#rows[first]!;
    return { segment, mark: mark - 1 };
  }

  /** Settled rows behind that place. */
  ahead(): LogPlace<Segment>[] {
    const ahead: LogPlace<Segment>[] = [];
    for (let at = this.#firstWaiting(); at < this.#rows.length; at++) {
      const row = this.#rows[at]!;
      if (row.isSettled) ahead.push(row);
    }
    return ahead;
  }

  /** Forgets what the checkpoint has passed, once that is written down. */
  trim(onPassed: (id: string) => void): void {
    const first = this.#firstWaiting();
    for (let at = this.#first; at < first; at++) {
      const { id } = this.#rows[at]!.event;
      this.#byId.delete(id);
      onPassed(id);
    }
    this.#first = first;
    if (this.#first * 2 < this.#rows.length) return;
    this.#rows.splice(0, this.#first);
    this.#first = 0;
  }

  #firstWaiting(): number {
    let at = this.#first;
    while (at < this.#rows.length && this.#rows[at]!.isSettled) at += 1;
    return at;
  }
}
