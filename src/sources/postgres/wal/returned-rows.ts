import type { LogRow } from "../log/log-kind.ts";
import type { WalPosition, WalSegment } from "./wal-position.ts";

interface Given {
  readonly segment: WalSegment;
  count: number;
  lastMark: number;
}

/** Rows that were returned and are not settled yet, counted by transaction for the backlog. */
export class ReturnedRows {
  #segments: Given[] = [];

  add(rows: readonly LogRow<WalSegment>[]): void {
    let last = this.#segments.at(-1);
    for (const { mark, segment } of rows) {
      if (last === undefined || last.segment.lsn !== segment.lsn) {
        last = { segment, count: 0, lastMark: 0 };
        this.#segments.push(last);
      }
      last.count += 1;
      last.lastMark = mark;
    }
  }

  /** Exact, unless the position lies inside a transaction that also has rows of others. */
  countAfter({ mark, segment }: WalPosition): number {
    let count = 0;
    for (const given of this.#segments) {
      if (given.segment.lsn > segment.lsn) count += given.count;
      else if (given.segment.lsn === segment.lsn) count += Math.max(0, Math.min(given.count, given.lastMark - mark));
    }
    return count;
  }

  oldestCommitMs({ mark, segment }: WalPosition): number | null {
    const isAfter = (given: Given) =>
      given.segment.lsn > segment.lsn || (given.segment.lsn === segment.lsn && given.lastMark > mark);
    return this.#segments.find(isAfter)?.segment.committedAtMs ?? null;
  }

  /** Everything before the position is settled. */
  forget({ segment }: WalPosition): void {
    if (this.#segments[0] === undefined || this.#segments[0].segment.lsn >= segment.lsn) return;
    this.#segments = this.#segments.filter((given) => given.segment.lsn >= segment.lsn);
  }

  /** Rows after the position will be returned again. */
  rewind({ mark, segment }: WalPosition): void {
    this.#segments = this.#segments.filter((given) => given.segment.lsn <= segment.lsn);
    const last = this.#segments.at(-1);
    if (last === undefined || last.segment.lsn !== segment.lsn || last.lastMark <= mark) return;
    last.count = Math.max(0, last.count - (last.lastMark - mark));
    last.lastMark = mark;
  }
}
