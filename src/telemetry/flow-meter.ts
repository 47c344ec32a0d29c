import type { Look } from "./backlog-watch.ts";

interface Sample {
  readonly atMs: number;
  /** Events delivered since ever, by pipeline. */
  readonly totals: ReadonlyMap<string, number>;
}

interface Balance {
  readonly atMs: number;
  /** Everything that was ever written, but for a constant that nobody knows. */
  readonly written: number;
  /** A second, since the balance before; null for the first. */
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
 * How fast events come, go and pile up, from totals and counts that were taken at whatever moments. What was delivered,
 * waits or is dead was written once: so the growth of the three together is what came in.
 */
export class FlowMeter {
  #samples: readonly Sample[] = [];
  readonly #balances = new Map<string, Balance>();
  /** Counts that are younger than the last sample, by pipeline. */
  readonly #unbalanced = new Map<string, Look>();
  #waiting: readonly Waiting[] = [];

  sample(atMs: number, totals: ReadonlyMap<string, number>): void {
    if (atMs <= (this.#samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY)) return;
    const kept = this.#samples.filter((sample) => sample.atMs >= atMs - KEPT_MS);
    this.#samples = [...kept, { atMs, totals }].slice(-SAMPLES_MAX);
    for (const [pipeline, look] of this.#unbalanced) if (look.atMs <= atMs) this.#balance(pipeline, look);
  }

  /** Whoever counts after the last sample waits for the next one, which tells what was delivered by then. */
  count(looks: ReadonlyMap<string, Look>): void {
    const sampledMs = this.#samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY;
    for (const [pipeline, look] of looks) {
      if (look.atMs <= sampledMs) this.#balance(pipeline, look);
      else this.#unbalanced.set(pipeline, look);
    }
    const found = [...looks.values()].map(({ atMs, found: backlog }) => ({ atMs, pending: backlog?.pending }));
    const atMs = Math.max(...found.map((look) => look.atMs));
    if (found.length === 0 || atMs <= (this.#waiting.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY)) return;
    if (found.some(({ pending }) => pending === undefined)) return;
    const pending = found.reduce((sum, look) => sum + (look.pending ?? 0), 0);
    this.#waiting = [...this.#waiting.filter((it) => it.atMs >= atMs - SHRINK_MS), { atMs, pending }];
  }

  /** Over the last seconds; null while there are no two samples, or the last is too old. */
  publishedPerSecond(pipelines: readonly string[], nowMs: number): number | null {
    const last = this.#samples.at(-1);
    if (last === undefined || last.atMs < nowMs - 3 * RATE_MS) return null;
    return this.publishedSince(pipelines, last.atMs - RATE_MS);
  }

  /** Between the last sample of then, or else the first of all, and the last one; null where they are the same. */
  publishedSince(pipelines: readonly string[], sinceMs: number): number | null {
    const last = this.#samples.at(-1);
    const first = this.#samples.findLast(({ atMs }) => atMs <= sinceMs) ?? this.#samples[0];
    if (first === undefined || last === undefined || first.atMs === last.atMs) return null;
    return perSecond(published(first, last, pipelines), last.atMs - first.atMs);
  }

  /** Null where one of them could not be counted exactly, twice. */
  writtenPerSecond(pipelines: readonly string[]): number | null {
    let sum = 0;
    for (const pipeline of pipelines) {
      const rate = this.#balances.get(pipeline)?.perSecond ?? null;
      if (rate === null) return null;
      sum += rate;
    }
    return pipelines.length === 0 ? null : sum;
  }

  /** How fast what waits gets less; negative when it grows, null when nobody knows. */
  get shrinkPerSecond(): number | null {
    const [first, last] = [this.#waiting[0], this.#waiting.at(-1)];
    if (first === undefined || last === undefined || first.atMs === last.atMs) return null;
    return ((first.pending - last.pending) * 1_000) / (last.atMs - first.atMs);
  }

  #balance(pipeline: string, { atMs, found }: Look): void {
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

  /** As if delivery were even between two samples. There is one at that moment or later. */
  #publishedAt(pipeline: string, atMs: number): number {
    const after = this.#samples.find((sample) => sample.atMs >= atMs)!;
    const before = this.#samples.findLast((sample) => sample.atMs <= atMs) ?? after;
    const [from, to] = [totalIn(before, pipeline), totalIn(after, pipeline)];
    const share = before === after ? 0 : (atMs - before.atMs) / (after.atMs - before.atMs);
    return from + (to - from) * share;
  }
}

/** A total that has become less was begun anew. */
function published(first: Sample, last: Sample, pipelines: readonly string[]): number {
  return pipelines.reduce((sum, pipeline) => {
    return sum + Math.max(0, totalIn(last, pipeline) - totalIn(first, pipeline));
  }, 0);
}

/** A pipeline that a sample does not have has not begun. */
function totalIn({ totals }: Sample, pipeline: string): number {
  return totals.get(pipeline) ?? 0;
}

function perSecond(count: number, ms: number): number {
  return (Math.max(0, count) * 1_000) / ms;
}
