/** Upper bounds of the buckets, from the send of a request to its answer. Slower answers share one more bucket. */
export const ANSWER_BOUNDS_MS = [
  1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000,
  10_000, 15_000, 20_000, 30_000, 50_000, 70_000, 100_000,
] as const;

const BUCKETS = ANSWER_BOUNDS_MS.length + 1;

/** The index of the bucket that a duration belongs to. */
export function bucketOf(ms: number): number {
  let low = 0;
  let high: number = ANSWER_BOUNDS_MS.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ms > ANSWER_BOUNDS_MS[middle]!) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A count of zero for each bucket. */
export function emptyBuckets(): number[] {
  return new Array<number>(BUCKETS).fill(0);
}

/** The sum of all buckets. */
export function countIn(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** A quantile, interpolated between two bounds; beyond the last bound, that bound. Null when all counts are zero. */
export function quantileMs(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  const wanted = countIn(counts) * share;
  if (wanted === 0) return null;
  let below = 0;
  for (const [at, count] of counts.entries()) {
    if (below + count < wanted) {
      below += count;
      continue;
    }
    const from = bounds[at - 1] ?? 0;
    const to = bounds[at] ?? from;
    return from + ((to - from) * (wanted - below)) / count;
  }
  return null;
}

/** The answers of a sliding window, in a ring of time slices, so that its memory never grows. */
export class AnswerRing {
  readonly #sliceMs: number;
  readonly #slices: number;
  readonly #counts: Uint32Array;
  /** The number of the time slice that each place of the ring holds. */
  readonly #numbers: Float64Array;

  constructor(sliceMs: number, slices: number) {
    this.#sliceMs = sliceMs;
    this.#slices = slices;
    this.#counts = new Uint32Array(slices * BUCKETS);
    this.#numbers = new Float64Array(slices).fill(-1);
  }

  /** Counts one answer. The first answer of a new slice overwrites the oldest slice. */
  add(nowMs: number, bucket: number): void {
    const number = Math.floor(nowMs / this.#sliceMs);
    const place = number % this.#slices;
    if (this.#numbers[place] !== number) {
      this.#numbers[place] = number;
      this.#counts.fill(0, place * BUCKETS, (place + 1) * BUCKETS);
    }
    this.#counts[place * BUCKETS + bucket]! += 1;
  }

  /** The counts of the last `windowMs`, including the present slice. */
  since(nowMs: number, windowMs: number): number[] {
    const first = Math.floor((nowMs - windowMs) / this.#sliceMs) + 1;
    const last = Math.floor(nowMs / this.#sliceMs);
    const sums = emptyBuckets();
    for (let place = 0; place < this.#slices; place += 1) {
      const number = this.#numbers[place]!;
      if (number < first || number > last) continue;
      for (let at = 0; at < BUCKETS; at += 1) sums[at]! += this.#counts[place * BUCKETS + at]!;
    }
    return sums;
  }
}
