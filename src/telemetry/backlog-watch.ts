import type { Clock } from "../core/clock.ts";
import type { Backlog } from "../ports/queue-store.ts";

export interface WatchedBacklog {
  /** The pipeline's name. */
  readonly pipeline: string;
  readonly source: string;
  readonly schema: string;
  backlog(): Promise<Backlog>;
}

export interface BacklogFigures {
  readonly source: string;
  readonly schema: string;
  /** What the last look found, however old; null before the first. */
  readonly last: Backlog | null;
  /** How late the relay is at this moment, also when nobody can look. */
  readonly lagMs: number;
}

interface PipelineFigures extends BacklogFigures {
  readonly pipeline: string;
}

export interface Look {
  readonly found: Backlog | null;
  /** When it was found; before that, since when nobody knows anything. */
  readonly atMs: number;
  readonly hasFailed: boolean;
}

const CACHED_MS = 5_000;

/**
 * The figures of all sources, asked for at most every five seconds, one source at a time, and never waited for longer
 * than the caller wants to. While the database does not answer, whatever waited last is taken to wait still: and if
 * nothing did, something may have come since.
 */
export class BacklogWatch {
  readonly #sources: readonly WatchedBacklog[];
  readonly #clock: Clock;
  readonly #looks: Map<string, Look>;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;

  constructor(sources: readonly WatchedBacklog[], clock: Clock) {
    this.#sources = sources;
    this.#clock = clock;
    const atMs = clock.monotonicMs();
    this.#looks = new Map(sources.map(({ pipeline }) => [pipeline, { found: null, atMs, hasFailed: false }]));
  }

  async figures(patienceMs: number): Promise<readonly PipelineFigures[]> {
    if (this.#clock.monotonicMs() - this.#lookedMs >= CACHED_MS) {
      this.#looking ??= this.#lookAtAll().finally(() => {
        this.#looking = null;
      });
    }
    if (this.#looking !== null) {
      const patience = new AbortController();
      await Promise.race([this.#looking, this.#clock.sleep(patienceMs, patience.signal)]);
      patience.abort();
    }
    return this.#sources.map(({ pipeline, source, schema }) => {
      const look = this.#looks.get(pipeline)!;
      return { pipeline, source, schema, last: look.found, lagMs: this.#lagMs(look) };
    });
  }

  /** What is known by pipeline, without asking anybody. */
  get looks(): ReadonlyMap<string, Look> {
    return this.#looks;
  }

  /** One after the other: the delivery needs the connections more. */
  async #lookAtAll(): Promise<void> {
    for (const source of this.#sources) {
      const last = this.#looks.get(source.pipeline)!;
      const look = await source.backlog().then(
        (found) => ({ found, atMs: this.#clock.monotonicMs(), hasFailed: false }),
        () => ({ ...last, hasFailed: true }),
      );
      this.#looks.set(source.pipeline, look);
    }
    this.#lookedMs = this.#clock.monotonicMs();
  }

  #lagMs({ found, atMs, hasFailed }: Look): number {
    const sinceMs = this.#clock.monotonicMs() - atMs;
    const oldestMs = found?.oldestAgeMs ?? 0;
    const isOverdue = hasFailed || found === null || sinceMs > 2 * CACHED_MS;
    return isOverdue ? oldestMs + sinceMs : oldestMs;
  }
}
