import { eventBytes } from "../../../core/event.ts";
import type { LogRow } from "../log/log-kind.ts";
import type { WalSegment } from "./wal-position.ts";

/** Limits of unread rows; beyond them the relay reads nothing more from the socket. */
const ROWS_MAX = 4_000;
const BYTES_MAX = 4 * 1024 * 1024;
/** Memory of a row besides its event. */
const ROW_BYTES = 400;

/** Rows that have arrived and were not requested yet, in order. */
export class WalBuffer {
  #rows: LogRow<WalSegment>[] = [];
  #first = 0;
  #bytes = 0;

  get length(): number {
    return this.#rows.length - this.#first;
  }

  get isFull(): boolean {
    return this.length >= ROWS_MAX || this.#bytes >= BYTES_MAX;
  }

  /** Half empty: it pays to read on. */
  get hasRoom(): boolean {
    return this.length <= ROWS_MAX / 2 && this.#bytes <= BYTES_MAX / 2;
  }

  get first(): LogRow<WalSegment> | undefined {
    return this.#rows[this.#first];
  }

  add(row: LogRow<WalSegment>): void {
    this.#rows.push(row);
    this.#bytes += eventBytes(row.event) + ROW_BYTES;
  }

  /** At most `rows`, and no more once `bytes` is reached. */
  take(rows: number, bytes: number): readonly LogRow<WalSegment>[] {
    const start = this.#first;
    let end = start;
    let size = 0;
    while (end < this.#rows.length && end - start < rows && (size < bytes || end === start)) {
      size += eventBytes(this.#rows[end]!.event);
      end += 1;
    }
    const taken = this.#rows.slice(start, end);
    this.#first = end;
    this.#bytes -= size + ROW_BYTES * taken.length;
    // Cut from time to time: the buffer must neither keep returned rows alive nor move its content with every page.
    if (this.#first * 2 >= this.#rows.length) {
      this.#rows = this.#rows.slice(this.#first);
      this.#first = 0;
    }
    return taken;
  }
}
