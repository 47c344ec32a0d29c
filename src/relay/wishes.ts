import type { Survey } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import type { Lane } from "./lane.ts";
import type { Poller } from "./poller.ts";
import type { RateGate } from "./rate-gate.ts";

/** After a change of holds more of them are expected for so long. */
const HOLDS_EXPECTED_MS = 10_000;

/** What people want of a pipeline, as the looks at the lanes bring it along. */
export class Wishes {
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

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Nothing new is claimed while a person has stopped the pipeline. The lanes stay, unless they are asked for too. */
  heed({ limitPerSecond, pause }: Survey): void {
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

  /** A person has made holds due, or ended them. More of them may follow: for a while the looks come sooner. */
  async lookAtHolds({ holdsChange = null }: Survey): Promise<void> {
    if (holdsChange === this.#holdsChange) return;
    this.#holdsChange = holdsChange;
    this.#holdsChangedMs = this.#context.clock.monotonicMs();
    const open = this.#lanes().filter((lane) => lane.isOpen);
    await Promise.all(open.map((lane) => (lane.holds.hasFewDead ? lane.reviewHolds() : lane.lookAtHolds())));
  }

  /** Also while keys wait for a person: whoever discards a dead letter sees its key go on. */
  get expectsHolds(): boolean {
    if (this.#lanes().some(({ holds }) => holds.parkingDead > 0)) return true;
    return this.#context.clock.monotonicMs() - this.#holdsChangedMs < HOLDS_EXPECTED_MS;
  }
}
