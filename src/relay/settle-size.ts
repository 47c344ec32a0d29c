/** After a write of the full size that was quick, the next may be larger by this factor. */
const GROWTH = 1.25;
/** Quick: within this share of the time after which a write was given up. */
const QUICK_SHARE = 0.4;

/**
 * How many rows one settle writes. A database that gives a large write up (a slow trigger, a lock, a timeout) gets half
 * of it, and half of that, until it takes it; the size grows again while the writes are quick.
 */
export class SettleSize {
  readonly #max: number;
  #rows: number;
  /** The shortest time after which a write was given up. */
  #givenUpMs = Number.POSITIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
    this.#rows = max;
  }

  get rows(): number {
    return this.#rows;
  }

  /** A write of so many rows was given up by the database after this time. */
  gaveUp(rows: number, afterMs: number): void {
    this.#rows = Math.max(1, Math.floor(Math.min(rows, this.#rows) / 2));
    this.#givenUpMs = Math.min(this.#givenUpMs, afterMs);
  }

  done(rows: number, durationMs: number): void {
    if (rows < this.#rows || durationMs > QUICK_SHARE * this.#givenUpMs) return;
    this.#rows = Math.min(this.#max, Math.ceil(this.#rows * GROWTH));
    if (this.#rows === this.#max) this.#givenUpMs = Number.POSITIVE_INFINITY;
  }
}
