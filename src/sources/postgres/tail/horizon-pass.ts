import type { LogPage, LogPass, LogPosition, LogRow, PassRequest } from "../log/log-kind.ts";
import { BEGINNING, type Difference } from "./difference.ts";
import { serverRecovered } from "./server-recovered.ts";
import type { TailReader } from "./tail-reader.ts";

/** One pass over the table in the order of its positions, up to the position that is final by then. */
export class HorizonPass implements LogPass<Difference> {
  readonly #reader: TailReader;
  readonly #table: string;
  readonly #places: Map<number, LogPosition<Difference>>;
  readonly #horizonBehind: (after: number) => Promise<number>;
  #isOver = false;

  constructor(
    reader: TailReader,
    table: string,
    { heads }: PassRequest<Difference>,
    horizonBehind: (after: number) => Promise<number>,
  ) {
    this.#reader = reader;
    this.#table = table;
    this.#places = new Map(heads);
    this.#horizonBehind = horizonBehind;
  }

  async next(rowsMax: number, bytesMax: number): Promise<LogPage<Difference>> {
    const after = Math.min(...[...this.#places.values()].map(({ mark }) => mark));
    const horizon = this.#isOver || this.#places.size === 0 ? 0 : await this.#horizonBehind(after);
    if (horizon <= after) return { rows: [], heads: new Map(this.#places), isEnd: true };
    const lanes = [...this.#places.keys()];
    const difference = { from: BEGINNING, to: String(horizon) };
    const page = await this.#reader.read({ difference, after, lanes }, rowsMax, bytesMax);
    const mark = page.place.segment.to === null ? horizon : page.place.mark;
    const before = new Map<number, LogPosition<Difference>>();
    for (const [lane, place] of this.#places) {
      const { incarnation } = place.segment;
      if (incarnation !== undefined && page.incarnation !== "" && incarnation !== page.incarnation)
        throw serverRecovered(this.#table);
      before.set(lane, place);
      if (place.mark < mark) this.#places.set(lane, { segment: place.segment, mark });
    }
    const rows: LogRow<Difference>[] = [];
    for (const row of page.rows) {
      const place = before.get(row.event.lane);
      if (place === undefined || row.mark <= place.mark) continue;
      rows.push({ ...row, segment: place.segment });
    }
    return { rows, heads: new Map(this.#places), isEnd: false };
  }

  leave(lane: number): void {
    this.#places.delete(lane);
  }

  async end(): Promise<void> {
    this.#isOver = true;
  }
}
