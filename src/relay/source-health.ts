import { Backoff } from "../core/backoff.ts";
import { isRelayError, reasonOf, stackOf } from "../core/errors.ts";
import type { PipelineContext } from "./context.ts";
import { untilAborted } from "./until-aborted.ts";

/** How long an operation is retried. */
interface RetryScope {
  readonly isOver: () => boolean;
  /** Aborts the operation itself. */
  readonly ended: AbortSignal;
  /** Cuts the pauses between two attempts short. */
  readonly stopping: AbortSignal;
}

/** The operations of a pipeline that fail at present, and since when. Without any, the source is healthy. */
export class SourceHealth {
  readonly #context: PipelineContext;
  readonly #failing = new Set<string>();
  #sinceMs = Number.POSITIVE_INFINITY;

  constructor(context: PipelineContext) {
    this.#context = context;
  }

  /** True while any operation fails. */
  get isBroken(): boolean {
    return this.#failing.size > 0;
  }

  /** True while this operation fails. */
  isFailing(operation: string): boolean {
    return this.#failing.has(operation);
  }

  /** True when the source has been broken for this long, without a moment in which all operations succeeded. */
  isBrokenFor(ms: number): boolean {
    return this.#context.clock.monotonicMs() - this.#sinceMs >= ms;
  }

  /** The operation failed and is retried: the source is broken until `recovered` is called for it. */
  report(operation: string, error: unknown): void {
    if (this.#failing.size === 0) this.#sinceMs = this.#context.clock.monotonicMs();
    this.#failing.add(operation);
    this.reportOnce(error);
  }

  /** Reports an error of an operation that is not retried. It does not make the source broken. */
  reportOnce(error: unknown): void {
    const { events, name } = this.#context;
    const code = isRelayError(error) ? error.code : "DATABASE_UNREACHABLE";
    events.emit("SourceBroken", { pipeline: name, code, reason: reasonOf(error), stack: stackOf(error) });
  }

  /** The operation succeeded. The last one that does so ends the outage. */
  recovered(operation: string): void {
    if (!this.#failing.delete(operation) || this.#failing.size > 0) return;
    this.#sinceMs = Number.POSITIVE_INFINITY;
    this.#context.events.emit("SourceRecovered", { pipeline: this.#context.name });
  }

  /** Retries the work, with growing pauses, until it succeeds or the scope is over. */
  async retry(operation: string, work: () => Promise<void>, { isOver, ended, stopping }: RetryScope): Promise<void> {
    const { clock, random, timing } = this.#context;
    const backoff = new Backoff({ firstMs: timing.backoffInitialMs, lastMs: timing.backoffMaxMs });
    while (!isOver()) {
      const startedMs = clock.monotonicMs();
      try {
        await untilAborted(work(), ended);
        this.recovered(operation);
        return;
      } catch (error) {
        this.report(operation, error);
        // Work that ran for long before it failed (the poll loop) is a new outage, not the next failure of the last
        // one.
        if (clock.monotonicMs() - startedMs > timing.backoffMaxMs) backoff.reset();
        await clock.sleep(backoff.nextMs() * (0.5 + random.next()), stopping);
      }
    }
  }
}

/** The operation that opens a lane, as `SourceHealth` knows it. */
export function opening(lane: number): string {
  return `open lane ${lane}`;
}

/** The operation that writes a lane's outcomes. */
export function settling(lane: number): string {
  return `settle lane ${lane}`;
}

/** The operation that marks a lane's delivered rows. */
export function marking(lane: number): string {
  return `mark rows of lane ${lane}`;
}
