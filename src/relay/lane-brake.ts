import type { PipelineContext } from "./context.ts";
import type { HoldBook } from "./hold-book.ts";

/** From so many failed events on a lane takes nothing new: its destination is broken, not the events. */
export class LaneBrake {
  readonly #context: PipelineContext;
  readonly #lane: number;
  readonly #holds: HoldBook;
  #isTold = false;

  constructor(context: PipelineContext, lane: number, holds: HoldBook) {
    this.#context = context;
    this.#lane = lane;
    this.#holds = holds;
  }

  get isOn(): boolean {
    return this.#holds.burdens >= this.#context.limits.holdsPerLaneMax;
  }

  /** Called whenever holds have changed. */
  watch(): void {
    const { isOn } = this;
    if (isOn === this.#isTold) return;
    const { events, name } = this.#context;
    const about = { pipeline: name, lane: this.#lane };
    this.#isTold = isOn;
    if (isOn) events.emit("LaneBraked", { ...about, holds: this.#holds.burdens });
    else events.emit("LaneUnbraked", about);
  }
}
