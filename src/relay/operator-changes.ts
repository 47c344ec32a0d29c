import type { Survey } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import type { Lane } from "./lane.ts";
import type { Poller } from "./poller.ts";
import type { RateGate } from "./rate-gate.ts";

/** After a change of holds, more changes are expected for this long. */
const HOLDS_EXPECTED_MS = 10_000;

/**
 * Applies what an operator changed: the pause and the rate limit of a pipeline, and its holds. A survey reports them.
 */
export class OperatorChanges {
  readonly #context: PipelineContext;
  readonly #poller: Poller;
  readonly #limit: RateGate;
  readonly #lanes: () => readonly Lane[];
  #isPaused = false;
  #holdsChange: string | null = null;
  #holdsChangedMs = Number.NEGATIVE_INFINITY;

  constructor(context: PipelineContext, poller: Poller, limit: RateGate, lanes: () => readonly Lane[]) {
    this.#context = context;
    this.#poller = poller;
    this.#limit = limit;
    this.#lanes = lanes;
  }

  /** True while the operator has paused the pipeline, as of the last survey. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** A paused pipeline claims nothing new. It keeps its lanes, unless the operator asked to hand them over. */
  apply({ limitPerSecond, pause }: Survey): void {
    const { events, name } = this.#context;
    const wasPaused = this.#isPaused;
    this.#isPaused = pause !== null;
    this.#poller.isPaused = this.#isPaused;
    if (this.#limit.limitTo(limitPerSecond)) {
      events.emit("PipelineLimited", { pipeline: name, perSecond: limitPerSecond });
    }
    if (pause !== null && !wasPaused) {
      events.emit("PipelinePaused", { pipeline: name, by: pause.by, reason: pause.reason });
    } else if (pause === null && wasPaused) events.emit("PipelineResumed", { pipeline: name });
  }

  /** Re-reads the holds of all open lanes when the operator made holds due or ended them. */
  async applyHoldChanges({ holdsChange = null }: Survey): Promise<void> {
    if (holdsChange === this.#holdsChange) return;
    this.#holdsChange = holdsChange;
    this.#holdsChangedMs = this.#context.clock.monotonicMs();
    const open = this.#lanes().filter((lane) => lane.isOpen);
    // A discarded dead letter frees its key, and only a review of all holds finds out which one is gone.
    await Promise.all(open.map((lane) => (lane.holds.hasFewDead ? lane.reviewHolds() : lane.refreshHolds())));
  }

  /**
   * True when the next survey should come sooner: more changes tend to follow a first one, and while keys are parked an
   * operator who discards a dead letter waits for its key to continue.
   */
  get expectsHoldChanges(): boolean {
    if (this.#lanes().some(({ holds }) => holds.parkingDead > 0)) return true;
    return this.#context.clock.monotonicMs() - this.#holdsChangedMs < HOLDS_EXPECTED_MS;
  }
}
