import type { PipelineContext } from "./context.ts";

/** Idle pauses are longer by up to this share, so that many relays do not ask in step. */
const IDLE_SPREAD = 0.7;
const IDLE_SHARE = 0.05; // of the time, for looking when there is nothing

/**
 * How long a source that has nothing is left alone: the pauses grow to the poll interval, and looking costs no more than
 * its share of the time, which it comes down to step by step: one slow look in the midst of traffic is no reason for a
 * long pause.
 */
export class IdlePace {
  readonly #context: PipelineContext;
  #pauseMs = 0;

  constructor(context: PipelineContext) {
    this.#context = context;
  }

  /** True when the last look found nothing. */
  get isQuiet(): boolean {
    return this.#pauseMs > 0;
  }

  /** Something was found, or is expected. */
  reset(): void {
    this.#pauseMs = 0;
  }

  /** The pause after a look that began then and found nothing. */
  pauseAfter(startedMs: number): number {
    const { clock, random, timing } = this.#context;
    const { pollBusyMs, pollIntervalMs } = timing;
    this.#pauseMs = Math.min(pollIntervalMs, Math.max(pollBusyMs, this.#pauseMs * 2));
    const shareMs = (clock.monotonicMs() - startedMs) / IDLE_SHARE;
    if (this.#pauseMs < pollIntervalMs) return Math.max(this.#pauseMs, Math.min(2 * this.#pauseMs, shareMs));
    const spreadMs = IDLE_SPREAD * pollIntervalMs * random.next();
    return Math.max(pollIntervalMs + spreadMs, Math.min(10 * pollIntervalMs, shareMs));
  }
}
