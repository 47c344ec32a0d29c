import type { Clock } from "../core/clock.ts";
import type { Backlog, QueueSource, SourceBacklog, Unrouted } from "../ports/queue-store.ts";

/** A source, with the pipelines whose backlog is counted. */
export interface WatchedSource {
  readonly source: string;
  readonly schema: string;
  readonly pipelines: readonly WatchedPipeline[];
  /** Counts the backlog of each pipeline. */
  count(): Promise<SourceBacklog>;
}

interface WatchedPipeline {
  /** Pipeline name. */
  readonly pipeline: string;
  readonly destination: string;
}

/** The backlog of one pipeline, as health and metrics show it. */
export interface BacklogFigures extends WatchedPipeline {
  readonly source: string;
  readonly schema: string;
  /** The last count, however old; null before the first. */
  readonly last: Backlog | null;
  /** The lag at this moment. Grows while the source cannot be counted. */
  readonly lagMs: number;
}

/** The events of one source that no route matches. */
export interface UnroutedFigures extends Unrouted {
  readonly source: string;
}

/** The last count of a pipeline's backlog. */
export interface BacklogCount {
  readonly found: Backlog | null;
  /** When it was counted; before the first count, when the watch began. */
  readonly atMs: number;
  readonly hasFailed: boolean;
}

/** Asks the source for all its pipelines, or each pipeline where the source cannot answer for all. */
export async function countBacklogs(
  source: Pick<QueueSource, "backlogs">,
  pipelines: ReadonlyMap<string, () => Promise<Backlog>>,
): Promise<SourceBacklog> {
  if (source.backlogs !== undefined) return await source.backlogs();
  const found = new Map<string, Backlog>();
  for (const [pipeline, backlog] of pipelines) {
    // One pipeline that fails does not stop the others.
    const own = await backlog().catch(() => null);
    if (own !== null) found.set(pipeline, own);
  }
  return { pipelines: found, unrouted: null };
}

const CACHED_MS = 5_000;

/**
 * The backlog of all sources. Counts at most every five seconds, one source at a time, and never makes a caller wait
 * longer than it allows. While the database does not answer, it assumes that the events of the last count still wait;
 * if there were none, events can have arrived since. So the lag grows in both cases.
 */
export class BacklogWatch {
  readonly #sources: readonly WatchedSource[];
  readonly #clock: Clock;
  readonly #counts: Map<string, BacklogCount>;
  /** By source, from its last count. */
  readonly #unrouted = new Map<string, Unrouted>();
  #countedMs = Number.NEGATIVE_INFINITY;
  #counting: Promise<void> | null = null;

  constructor(sources: readonly WatchedSource[], clock: Clock) {
    this.#sources = sources;
    this.#clock = clock;
    const atMs = clock.monotonicMs();
    const pipelines = sources.flatMap((source) => source.pipelines);
    this.#counts = new Map(pipelines.map(({ pipeline }) => [pipeline, { found: null, atMs, hasFailed: false }]));
  }

  async figures(waitMs: number): Promise<readonly BacklogFigures[]> {
    if (this.#clock.monotonicMs() - this.#countedMs >= CACHED_MS) {
      this.#counting ??= this.#countAll().finally(() => {
        this.#counting = null;
      });
    }
    if (this.#counting !== null) {
      const timeout = new AbortController();
      await Promise.race([this.#counting, this.#clock.sleep(waitMs, timeout.signal)]);
      timeout.abort();
    }
    return this.#sources.flatMap(({ pipelines, schema, source }) =>
      pipelines.map(({ destination, pipeline }) => {
        const count = this.#counts.get(pipeline)!;
        return { pipeline, source, destination, schema, last: count.found, lagMs: this.#lagMs(count) };
      }),
    );
  }

  /** The last count of each pipeline, without a new one. */
  get counts(): ReadonlyMap<string, BacklogCount> {
    return this.#counts;
  }

  /** Events that no route matches, for the sources that can count them; without a new count. */
  get unrouted(): readonly UnroutedFigures[] {
    return [...this.#unrouted].map(([source, unrouted]) => ({ source, ...unrouted }));
  }

  /** Counts one source after the other, because the delivery needs the connections more. */
  async #countAll(): Promise<void> {
    for (const source of this.#sources) {
      const found = await source.count().catch(() => null);
      const atMs = this.#clock.monotonicMs();
      for (const { pipeline } of source.pipelines) {
        const own = found?.pipelines.get(pipeline);
        const last = this.#counts.get(pipeline)!;
        this.#counts.set(
          pipeline,
          own === undefined ? { ...last, hasFailed: true } : { found: own, atMs, hasFailed: false },
        );
      }
      if (found === null) continue;
      if (found.unrouted === null) this.#unrouted.delete(source.source);
      else this.#unrouted.set(source.source, found.unrouted);
    }
    // Do not cache while a reader starts: that takes moments, and the operator who started it waits for the count.
    const isBeginning = [...this.#counts.values()].some(({ found }) => found?.hasBegun === false);
    if (!isBeginning) this.#countedMs = this.#clock.monotonicMs();
  }

  #lagMs({ found, atMs, hasFailed }: BacklogCount): number {
    const sinceMs = this.#clock.monotonicMs() - atMs;
    const oldestMs = found?.oldestAgeMs ?? 0;
    const isOverdue = hasFailed || found === null || sinceMs > 2 * CACHED_MS;
    return isOverdue ? oldestMs + sinceMs : oldestMs;
  }
}
