import type { LogPage, LogPass, LogPlace, LogRow, PassRequest } from "../log/log-kind.ts";
import { type Difference, keyOf } from "./difference.ts";
import { lifeOver } from "./life.ts";
import type { TailReader } from "./tail-reader.ts";
import type { Stretch } from "./tail-stretch.ts";

/**
 * One reading of the table up to one new snapshot. Lanes that stand in the same difference are read together. First
 * each finishes the difference it is in; then all go on to the same new snapshot, and from there on are together.
 */
export class TailPass implements LogPass<Difference> {
  readonly #reader: TailReader;
  readonly #places: Map<number, LogPlace<Difference>>;
  readonly #table: string;
  /** The snapshot up to which this pass reads; null until the first look. */
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
    const before = new Map<number, LogPlace<Difference>>();
    for (const lane of stretch.lanes) {
      const place = this.#places.get(lane);
      if (place === undefined) continue;
      if (place.segment.life !== undefined && place.segment.life !== page.life) throw lifeOver(this.#table);
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

  #isRead({ segment }: LogPlace<Difference>): boolean {
    return this.#newest !== null && segment.to === null && segment.from === this.#newest;
  }
}

/** Where a lane stands after a page of its group; one that was further on already stays there. */
function movedTo(place: LogPlace<Difference>, before: LogPlace<Difference>): LogPlace<Difference> {
  const isBehind = place.segment.to === null;
  return isBehind || place.mark >= before.mark ? place : { ...place, mark: before.mark };
}
