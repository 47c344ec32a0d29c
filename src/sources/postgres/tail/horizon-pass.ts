import type { LogPage, LogPass, LogPlace, LogRow, PassRequest } from "../log/log-kind.ts";
import { BEGINNING, type Difference } from "./difference.ts";
import { lifeOver } from "./life.ts";
import type { TailReader } from "./tail-reader.ts";

/** One reading of the table along its positions, up to what is final by then. */
export class HorizonPass implements LogPass<Difference> {
  readonly #reader: TailReader;
  readonly #table: string;
  readonly #places: Map<number, LogPlace<Difference>>;
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
    const before = new Map<number, LogPlace<Difference>>();
    for (const [lane, place] of this.#places) {
      const { life } = place.segment;
      if (life !== undefined && page.life !== "" && life !== page.life) throw lifeOver(this.#table);
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
