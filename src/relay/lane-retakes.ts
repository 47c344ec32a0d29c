import type { PipelineContext } from "./context.ts";

/**
 * When a lost lane may be taken over again. A lane that is lost repeatedly without a successful write in between would
 * send the same events each time, so the pauses grow.
 */
export class LaneRetakes {
  readonly #context: PipelineContext;
  readonly #lanes = new Map<number, { readonly pauseMs: number; readonly fromMs: number }>();

  constructor(context: PipelineContext) {
    this.#context = context;
  }

  /** The lane was lost: its pause doubles. */
  lost(lane: number): void {
    const { backoffInitialMs, backoffMaxMs } = this.#context.timing;
    const pauseMs = Math.min(backoffMaxMs, 2 * (this.#lanes.get(lane)?.pauseMs ?? backoffInitialMs / 2));
    this.#lanes.set(lane, { pauseMs, fromMs: this.#now() + pauseMs });
  }

  /** A write of the lane succeeded. */
  settled(lane: number): void {
    this.#lanes.delete(lane);
  }

  isPausing(lane: number): boolean {
    return (this.#lanes.get(lane)?.fromMs ?? 0) > this.#now();
  }

  /** The time until the next lost lane may be taken over; Infinity when there is none. */
  untilNextMs(isOwned: (lane: number) => boolean): number {
    const nowMs = this.#now();
    const waiting = [...this.#lanes].filter(([lane, { fromMs }]) => !isOwned(lane) && fromMs > nowMs);
    return Math.max(1, Math.min(...waiting.map(([, { fromMs }]) => fromMs - nowMs)));
  }

  #now(): number {
    return this.#context.clock.monotonicMs();
  }
}
