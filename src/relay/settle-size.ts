/** After a quick write of the full size, the next write may be larger by this factor. */
const GROWTH = 1.25;
/** A write is quick within this share of the time after which the database gave a write up. */
const QUICK_SHARE = 0.4;

/**
 * How many rows one settle writes. When the database gives a write up (a slow trigger, a lock, a timeout), the size is
 * halved until a write succeeds. It grows again while writes are quick.
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

  /** The database gave up a write of this many rows after this time. */
  gaveUp(rows: number, afterMs: number): void {
    this.#rows = Math.max(1, Math.floor(Math.min(rows, this.#rows) / 2));
    this.#givenUpMs = Math.min(this.#givenUpMs, afterMs);
  }

  /** A write succeeded. A small write proves nothing about larger ones. */
  done(rows: number, durationMs: number): void {
    if (rows < this.#rows || durationMs > QUICK_SHARE * this.#givenUpMs) return;
    this.#rows = Math.min(this.#max, Math.ceil(this.#rows * GROWTH));
    if (this.#rows === this.#max) this.#givenUpMs = Number.POSITIVE_INFINITY;
  }
}
