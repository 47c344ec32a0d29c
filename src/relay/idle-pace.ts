import type { PipelineContext } from "./context.ts";

/** Idle pauses are longer by up to this random share, so that many relays do not poll in step. */
const IDLE_SPREAD = 0.7;
/** The share of the time that polls of an idle source may take. */
const IDLE_SHARE = 0.05;

/**
 * The pauses between polls of an idle source. They double up to the poll interval. A slow source is polled less often,
 * so that polls stay within their share of the time; but only step by step, because one slow poll in the middle of
 * traffic is no reason for a long pause.
 */
export class IdlePace {
  readonly #context: PipelineContext;
  #pauseMs = 0;

  constructor(context: PipelineContext) {
    this.#context = context;
  }

  /** True when the last poll found nothing. */
  get isQuiet(): boolean {
    return this.#pauseMs > 0;
  }

  /** A poll found events, or events are expected: poll without a pause. */
  reset(): void {
    this.#pauseMs = 0;
  }

  /** The pause after a poll that began at this time and found nothing. */
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
