import type { LogPosition, LogRow } from "./log-kind.ts";

/** A row that was read and that the checkpoint has not passed yet. */
export interface WindowRow<Segment> extends LogRow<Segment> {
  /** Delivered, parked, or delivered before: nothing is left to do for it. */
  isSettled: boolean;
}

/**
 * The rows that a lane has read and not yet passed, in the order of reading. The checkpoint is the position before the
 * first row that is not settled; rows settled beyond it are remembered one by one.
 */
export class LaneWindow<Segment> {
  /** Where reading continues. */
  head: LogPosition<Segment>;
  readonly #rows: WindowRow<Segment>[] = [];
  readonly #byId = new Map<string, WindowRow<Segment>>();
  /** Rows before this index are settled and forgotten; they are cut off from time to time. */
  #first = 0;

  constructor(head: LogPosition<Segment>) {
    this.head = head;
  }

  /** Undefined when the row is not in the window or is settled. */
  waiting(id: string): WindowRow<Segment> | undefined {
    const row = this.#byId.get(id);
    return row === undefined || row.isSettled ? undefined : row;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  /** Settled or not. */
  get(id: string): LogPosition<Segment> | undefined {
    return this.#byId.get(id);
  }

  add(row: LogRow<Segment>, isSettled = false): WindowRow<Segment> {
    const { event, mark, segment } = row;
    const kept = { event, mark, segment, isSettled };
    this.#rows.push(kept);
    this.#byId.set(event.id, kept);
    return kept;
  }

  /** Unsettled rows, in the order of reading. */
  allWaiting(): WindowRow<Segment>[] {
    const waiting: WindowRow<Segment>[] = [];
    for (let at = this.#first; at < this.#rows.length; at++) {
      const row = this.#rows[at]!;
      if (!row.isSettled) waiting.push(row);
    }
    return waiting;
  }

  /** The checkpoint's position: everything before it is settled. */
  get low(): LogPosition<Segment> {
    const first = this.#firstWaiting();
    if (first === this.#rows.length) return this.head;
    const { mark, segment } = this.#rows[first]!;
    return { segment, mark: mark - 1 };
  }

  /** Settled rows beyond that position. */
  ahead(): LogPosition<Segment>[] {
    const ahead: LogPosition<Segment>[] = [];
    for (let at = this.#firstWaiting(); at < this.#rows.length; at++) {
      const row = this.#rows[at]!;
      if (row.isSettled) ahead.push(row);
    }
    return ahead;
  }

  /** Forgets the rows that the checkpoint has passed. Call it only once that checkpoint is written. */
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
