import type { LogPage, LogPass, LogPosition, LogRow, PassRequest } from "../log/log-kind.ts";
import { type Difference, keyOf } from "./difference.ts";
import { serverRecovered } from "./server-recovered.ts";
import type { TailReader } from "./tail-reader.ts";
import type { Stretch } from "./tail-stretch.ts";

/**
 * One pass over the table up to one new snapshot. Lanes in the same difference are read together. Each lane first
 * finishes its current difference; then all move to the same new snapshot and stay together from there on.
 */
export class TailPass implements LogPass<Difference> {
  readonly #reader: TailReader;
  readonly #places: Map<number, LogPosition<Difference>>;
  readonly #table: string;
  /** The snapshot up to which this pass reads; null until the first read. */
  #newest: string | null = null;
  #isOver = false;

  constructor(reader: TailReader, table: string, { heads }: PassRequest<Difference>) {
    this.#reader = reader;
    this.#table = table;
    this.#places = new Map(heads);
  }

  async next(rowsMax: number, bytesMax: number): Promise<LogPage<Difference>> {
    const stretch = this.#nextStretch();
    if (stretch === null) return { rows: [], heads: new Map(this.#places), isEnd: true };
    const page = await this.#reader.read(stretch, rowsMax, bytesMax);
    if (stretch.difference.to === null) this.#newest = page.difference.to;
    const before = new Map<number, LogPosition<Difference>>();
    for (const lane of stretch.lanes) {
      const place = this.#places.get(lane);
      if (place === undefined) continue;
      if (place.segment.incarnation !== undefined && place.segment.incarnation !== page.incarnation)
        throw serverRecovered(this.#table);
      before.set(lane, place);
      this.#places.set(lane, movedTo(page.place, place));
    }
    const rows: LogRow<Difference>[] = [];
    for (const row of page.rows) {
      const place = before.get(row.event.lane);
      if (place !== undefined && row.mark > place.mark) rows.push(row);
    }
    const isEnd = this.#nextStretch() === null;
    return { rows, heads: new Map(this.#places), isEnd, isComplete: isEnd && !this.#isOver };
  }

  leave(lane: number): void {
    this.#places.delete(lane);
  }

  async end(): Promise<void> {
    this.#isOver = true;
  }

  #nextStretch(): Stretch | null {
    if (this.#isOver) return null;
    const unread = [...this.#places].filter(([, place]) => !this.#isRead(place));
    const [, first] = unread.find(([, { segment }]) => segment.to !== null) ?? unread[0] ?? [];
    if (first === undefined) return null;
    const group = unread.filter(([, { segment }]) => keyOf(segment) === keyOf(first.segment));
    const { segment } = first;
    return {
      difference: segment.to === null && this.#newest !== null ? { ...segment, to: this.#newest } : segment,
      after: Math.min(...group.map(([, { mark }]) => mark)),
      lanes: group.map(([lane]) => lane),
    };
  }

  #isRead({ segment }: LogPosition<Difference>): boolean {
    return this.#newest !== null && segment.to === null && segment.from === this.#newest;
  }
}

/** A lane's position after a page of its group; a lane that was further already stays there. */
function movedTo(place: LogPosition<Difference>, before: LogPosition<Difference>): LogPosition<Difference> {
  const isBehind = place.segment.to === null;
  return isBehind || place.mark >= before.mark ? place : { ...place, mark: before.mark };
}
