import { isRelayError, reasonOf, stackOf } from "../core/errors.ts";
import type { PipelineContext } from "./context.ts";
import { untilAborted } from "./until-aborted.ts";

/** How long work is tried again. */
interface Perseverance {
  readonly isOver: () => boolean;
  /** Cuts the work itself off. */
  readonly ended: AbortSignal;
  /** Cuts the pauses short. */
  readonly stopping: AbortSignal;
}

/** What a pipeline cannot do at present, and since when. Empty: all is well. */
export class Troubles {
  readonly #context: PipelineContext;
  readonly #broken = new Set<string>();
  #sinceMs = Number.POSITIVE_INFINITY;

  constructor(context: PipelineContext) {
    this.#context = context;
  }

  get any(): boolean {
    return this.#broken.size > 0;
  }

  has(what: string): boolean {
    return this.#broken.has(what);
  }

  /** True when something could not be done for so long. */
  lastFor(ms: number): boolean {
    return this.#context.clock.monotonicMs() - this.#sinceMs >= ms;
  }

  report(what: string, error: unknown): void {
    this.#begin(what);
    this.tell(error);
  }

  /** Of something that is not tried again. */
  tell(error: unknown): void {
    const { events, name } = this.#context;
    const code = isRelayError(error) ? error.code : "DATABASE_UNREACHABLE";
    events.emit("SourceBroken", { pipeline: name, code, reason: reasonOf(error), stack: stackOf(error) });
  }

  recovered(what: string): void {
    if (!this.#broken.delete(what) || this.#broken.size > 0) return;
    this.#sinceMs = Number.POSITIVE_INFINITY;
    this.#context.events.emit("SourceRecovered", { pipeline: this.#context.name });
  }

  /** Tries until it succeeds or all is over, with growing pauses. */
  async persist(what: string, work: () => Promise<void>, { isOver, ended, stopping }: Perseverance): Promise<void> {
    const { clock, random, timing } = this.#context;
    let pauseMs = timing.backoffInitialMs;
    while (!isOver()) {
      const startedMs = clock.monotonicMs();
      try {
        await untilAborted(work(), ended);
        this.recovered(what);
        return;
      } catch (error) {
        this.report(what, error);
        if (clock.monotonicMs() - startedMs > timing.backoffMaxMs) pauseMs = timing.backoffInitialMs;
        await clock.sleep(pauseMs * (0.5 + random.next()), stopping);
        pauseMs = Math.min(timing.backoffMaxMs, pauseMs * 2);
      }
    }
  }

  #begin(what: string): void {
    if (this.#broken.size === 0) this.#sinceMs = this.#context.clock.monotonicMs();
    this.#broken.add(what);
  }
}

/** Names of troubles. */
export function opening(lane: number): string {
  return `open lane ${lane}`;
}

export function settling(lane: number): string {
  return `settle lane ${lane}`;
}
