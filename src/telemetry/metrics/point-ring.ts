/** One point of the charts. Rates are per second since the previous point. */
export interface Point {
  readonly at: string;
  readonly written: number | null;
  readonly published: number;
  readonly failed: number;
  readonly pending: number | null;
  readonly oldestAgeMs: number | null;
  readonly deadLetters: number;
}

/** The interval of the points. */
export const POINT_EVERY_MS = 5_000;
const KEPT_MS = 3_600_000;
const POINTS_MAX = KEPT_MS / POINT_EVERY_MS;

/** The points of the last hour. */
export class PointRing {
  #points: Point[] = [];

  add(point: Point): void {
    const sinceMs = Date.parse(point.at) - KEPT_MS;
    this.#points = [...this.#points.filter(({ at }) => Date.parse(at) >= sinceMs), point].slice(-POINTS_MAX);
  }

  /** Oldest first. */
  get points(): readonly Point[] {
    return this.#points;
  }

  get last(): Point | null {
    return this.#points.at(-1) ?? null;
  }
}
