import type { BacklogCount } from "../backlog-watch.ts";

interface Sample {
  readonly atMs: number;
  /** Events ever delivered, by pipeline. */
  readonly totals: ReadonlyMap<string, number>;
}

interface Balance {
  readonly atMs: number;
  /** All events ever written, up to an unknown constant. */
  readonly written: number;
  /** Written per second since the previous balance; null for the first. */
  readonly perSecond: number | null;
}

interface Waiting {
  readonly atMs: number;
  readonly pending: number;
}

const RATE_MS = 10_000;
const SHRINK_MS = 30_000;
const KEPT_MS = 180_000;
const SAMPLES_MAX = 200;

/**
 * Rates of writing, delivery and backlog growth, from totals and counts that are taken at independent moments. Every
 * event that is delivered, pending or dead was written once, so the growth of their sum is the rate of writing.
 */
export class FlowMeter {
  #samples: readonly Sample[] = [];
  readonly #balances = new Map<string, Balance>();
  /** By pipeline: counts that are younger than the last sample. */
  readonly #unbalanced = new Map<string, BacklogCount>();
  #waiting: readonly Waiting[] = [];

  sample(atMs: number, totals: ReadonlyMap<string, number>): void {
    if (atMs <= (this.#samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY)) return;
    const kept = this.#samples.filter((sample) => sample.atMs >= atMs - KEPT_MS);
    this.#samples = [...kept, { atMs, totals }].slice(-SAMPLES_MAX);
    for (const [pipeline, count] of this.#unbalanced) if (count.atMs <= atMs) this.#balance(pipeline, count);
  }

  /** A count after the last sample waits for the next one, which says what was delivered by then. */
  count(counts: ReadonlyMap<string, BacklogCount>): void {
    const sampledMs = this.#samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY;
    for (const [pipeline, count] of counts) {
      if (count.atMs <= sampledMs) this.#balance(pipeline, count);
      else this.#unbalanced.set(pipeline, count);
    }
    const found = [...counts.values()].map(({ atMs, found: backlog }) => ({ atMs, pending: backlog?.pending }));
    const atMs = Math.max(...found.map((count) => count.atMs));
    if (found.length === 0 || atMs <= (this.#waiting.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY)) return;
    if (found.some(({ pending }) => pending === undefined)) return;
    const pending = found.reduce((sum, count) => sum + (count.pending ?? 0), 0);
    this.#waiting = [...this.#waiting.filter((it) => it.atMs >= atMs - SHRINK_MS), { atMs, pending }];
  }

  /** Over the last seconds; null with less than two samples, or if the last one is too old. */
  publishedPerSecond(pipelines: readonly string[], nowMs: number): number | null {
    const last = this.#samples.at(-1);
    if (last === undefined || last.atMs < nowMs - 3 * RATE_MS) return null;
    return this.publishedSince(pipelines, last.atMs - RATE_MS);
  }

  /** From the last sample before `sinceMs`, or else the oldest, to the newest; null if that is the same sample. */
  publishedSince(pipelines: readonly string[], sinceMs: number): number | null {
    const last = this.#samples.at(-1);
    const first = this.#samples.findLast(({ atMs }) => atMs <= sinceMs) ?? this.#samples[0];
    if (first === undefined || last === undefined || first.atMs === last.atMs) return null;
    return perSecond(published(first, last, pipelines), last.atMs - first.atMs);
  }

  /** How long the pipeline has delivered nothing, as far back as the samples go; null with less than two. */
  idleForMs(pipeline: string): number | null {
    const last = this.#samples.at(-1);
    if (last === undefined || this.#samples.length < 2) return null;
    const total = last.totals.get(pipeline) ?? 0;
    const moved = this.#samples.findLastIndex(({ totals }) => (totals.get(pipeline) ?? 0) !== total);
    return last.atMs - this.#samples[moved + 1]!.atMs;
  }

  /** Null unless every pipeline has two exact counts. */
  writtenPerSecond(pipelines: readonly string[]): number | null {
    let sum = 0;
    for (const pipeline of pipelines) {
      const rate = this.#balances.get(pipeline)?.perSecond ?? null;
      if (rate === null) return null;
      sum += rate;
    }
    return pipelines.length === 0 ? null : sum;
  }

  /** How fast the backlog shrinks, in events per second. Negative while it grows; null if unknown. */
  get shrinkPerSecond(): number | null {
    const [first, last] = [this.#waiting[0], this.#waiting.at(-1)];
    if (first === undefined || last === undefined || first.atMs === last.atMs) return null;
    return ((first.pending - last.pending) * 1_000) / (last.atMs - first.atMs);
  }

  #balance(pipeline: string, { atMs, found }: BacklogCount): void {
    this.#unbalanced.delete(pipeline);
    const before = this.#balances.get(pipeline);
    if (before !== undefined && atMs <= before.atMs) return;
    if (found === null || found.isEstimate) {
      this.#balances.delete(pipeline);
      return;
    }
    const written = this.#publishedAt(pipeline, atMs) + found.pending + found.dead;
    const rate = before === undefined ? null : perSecond(written - before.written, atMs - before.atMs);
    this.#balances.set(pipeline, { atMs, written, perSecond: rate });
  }

  /** Interpolates between two samples; the caller guarantees a sample at that moment or later. */
  #publishedAt(pipeline: string, atMs: number): number {
    const after = this.#samples.find((sample) => sample.atMs >= atMs)!;
    const before = this.#samples.findLast((sample) => sample.atMs <= atMs) ?? after;
    const [from, to] = [totalIn(before, pipeline), totalIn(after, pipeline)];
    const share = before === after ? 0 : (atMs - before.atMs) / (after.atMs - before.atMs);
    return from + (to - from) * share;
  }
}

/** A total that is lower than before was reset, and counts as no delivery. */
function published(first: Sample, last: Sample, pipelines: readonly string[]): number {
  return pipelines.reduce((sum, pipeline) => {
    return sum + Math.max(0, totalIn(last, pipeline) - totalIn(first, pipeline));
  }, 0);
}

/** A pipeline that is missing in a sample has delivered nothing yet. */
function totalIn({ totals }: Sample, pipeline: string): number {
  return totals.get(pipeline) ?? 0;
}

function perSecond(count: number, ms: number): number {
  return (Math.max(0, count) * 1_000) / ms;
}
