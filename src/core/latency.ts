/** Upper bounds of the buckets, from the write of an event to its ack. Later events share one more bucket. */
export const LATENCY_BOUNDS_MS = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000,
] as const;

/** A histogram of the latencies of many events. */
export interface LatencyCounts {
  /** One count per bound, and one more for events above the last bound. */
  readonly counts: readonly number[];
  readonly sumMs: number;
}

/** Events of a batch that are measured, evenly spread; each stands for its neighbours. Small batches are exact. */
const SAMPLES_MAX = 25;
const DAY_CHARS = 10;
const ZERO = 48;

/** Counts the latencies of whole batches, at a cost that hardly grows with their size. */
export class LatencyCounter {
  #day = "";
  #dayMs = 0;

  /** Null when no event of the batch has a time at which it was written. */
  count(
    ids: readonly string[],
    createdAtOf: (id: string) => string | null | undefined,
    nowMs: number,
  ): LatencyCounts | null {
    const counts = new Array<number>(LATENCY_BOUNDS_MS.length + 1).fill(0);
    let sumMs = 0;
    let known = 0;
    const step = Math.ceil(ids.length / SAMPLES_MAX);
    for (let from = 0; from < ids.length; from += step) {
      const createdAt = createdAtOf(ids[from]!);
      if (createdAt == null) continue;
      const createdMs = this.#msOf(createdAt);
      if (Number.isNaN(createdMs)) continue;
      // The writer's clock may be ahead of ours: a latency is never negative.
      const latencyMs = Math.max(0, nowMs - createdMs);
      let at = 0;
      while (at < LATENCY_BOUNDS_MS.length && latencyMs > LATENCY_BOUNDS_MS[at]!) at += 1;
      const weight = Math.min(step, ids.length - from);
      counts[at]! += weight;
      sumMs += latencyMs * weight;
      known += weight;
    }
    return known === 0 ? null : { counts, sumMs };
  }

  /** `2026-01-10T12:00:00.123456Z`: nearly always the day is that of the event before, and need not be parsed again. */
  #msOf(text: string): number {
    if (text.charCodeAt(DAY_CHARS) !== 84 || text.charCodeAt(text.length - 1) !== 90 || text.length < 20) {
      return Date.parse(text);
    }
    if (!text.startsWith(this.#day) || this.#day === "") {
      this.#day = text.slice(0, DAY_CHARS);
      this.#dayMs = Date.parse(this.#day);
    }
    const seconds = (twoDigits(text, 11) * 60 + twoDigits(text, 14)) * 60 + twoDigits(text, 17);
    return this.#dayMs + seconds * 1_000 + fractionMs(text);
  }
}

function twoDigits(text: string, at: number): number {
  return (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO;
}

function fractionMs(text: string): number {
  if (text.charCodeAt(19) !== 46) return 0;
  let ms = 0;
  for (let at = 20, weight = 100; at < 23 && at < text.length - 1; at += 1, weight /= 10) {
    ms += (text.charCodeAt(at) - ZERO) * weight;
  }
  return ms;
}
