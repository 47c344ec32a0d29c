import type { LogRow } from "../log/log-kind.ts";
import type { WalPlace, WalSegment } from "./wal-place.ts";

interface Given {
  readonly segment: WalSegment;
  count: number;
  lastMark: number;
}

/** What was given out and is not settled yet, by transaction: only to be counted. */
export class GivenRows {
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

  /** Exact, unless the place lies inside a transaction that also has rows of others. */
  countAfter({ mark, segment }: WalPlace): number {
    let count = 0;
    for (const given of this.#segments) {
      if (given.segment.lsn > segment.lsn) count += given.count;
      else if (given.segment.lsn === segment.lsn) count += Math.max(0, Math.min(given.count, given.lastMark - mark));
    }
    return count;
  }

  oldestCommitMs({ mark, segment }: WalPlace): number | null {
    const isAfter = (given: Given) =>
      given.segment.lsn > segment.lsn || (given.segment.lsn === segment.lsn && given.lastMark > mark);
    return this.#segments.find(isAfter)?.segment.committedAtMs ?? null;
  }

  /** Everything before the place is settled. */
  forget({ segment }: WalPlace): void {
    if (this.#segments[0] === undefined || this.#segments[0].segment.lsn >= segment.lsn) return;
    this.#segments = this.#segments.filter((given) => given.segment.lsn >= segment.lsn);
  }

  /** What lies behind the place will be given out again. */
  rewind({ mark, segment }: WalPlace): void {
    this.#segments = this.#segments.filter((given) => given.segment.lsn <= segment.lsn);
    const last = this.#segments.at(-1);
    if (last === undefined || last.segment.lsn !== segment.lsn || last.lastMark <= mark) return;
    last.count = Math.max(0, last.count - (last.lastMark - mark));
    last.lastMark = mark;
  }
}
