import type { Settlement } from "../ports/queue-store.ts";

/** The number of rows that a settlement writes, without the holds that it deletes. */
export function rowsOf({ delivered, failed, handedBack, suspects }: Settlement): number {
  return delivered.length + failed.length + handedBack.length + suspects.length;
}

/**
 * Splits a settlement into a first part of at most `rowsMax` rows and the rest; null when nothing is left. Each part is
 * valid by itself, even if the process dies before the next. Without a ledger each part is a batch of its own. With a
 * ledger, the number of the batch is written with its last rows: until then the next owner settles all of them from the
 * ledger again. Holds are deleted last, because a hold may only go once its event is marked.
 */
export function firstPart(settlement: Settlement, rowsMax: number): readonly [Settlement, Settlement | null] {
  if (rowsOf(settlement) <= rowsMax) return [settlement, null];
  const { batch, ledger, previousBatch } = settlement;
  let room = rowsMax;
  const divide = <T>(items: readonly T[]): readonly [readonly T[], readonly T[]] => {
    const count = Math.min(room, items.length);
    room -= count;
    return [items.slice(0, count), items.slice(count)];
  };
  const delivered = divide(settlement.delivered);
  const failed = divide(settlement.failed);
  const handedBack = divide(settlement.handedBack);
  const suspects = divide(settlement.suspects);
  const isOwnBatch = ledger === "none" && delivered[0].length > 0;
  const reached = isOwnBatch ? previousBatch + 1n : previousBatch;
  const last = ledger !== "none" ? batch : reached + (delivered[1].length > 0 ? 1n : 0n);
  return [
    {
      ...settlement,
      batch: reached,
      delivered: delivered[0],
      failed: failed[0],
      handedBack: handedBack[0],
      suspects: suspects[0],
      releasedHolds: [],
    },
    {
      ...settlement,
      previousBatch: reached,
      batch: last,
      delivered: delivered[1],
      failed: failed[1],
      handedBack: handedBack[1],
      suspects: suspects[1],
    },
  ];
}

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
