import type { PipelineContext } from "./context.ts";
import type { LaneHolds } from "./lane-holds.ts";

/** Stops a lane with too many failed events from taking new ones: its destination is broken, not the events. */
export class LaneBrake {
  readonly #context: PipelineContext;
  readonly #lane: number;
  readonly #holds: LaneHolds;
  #isReported = false;

  constructor(context: PipelineContext, lane: number, holds: LaneHolds) {
    this.#context = context;
    this.#lane = lane;
    this.#holds = holds;
  }

  /** True while the lane must not take new events. */
  get isOn(): boolean {
    return this.#holds.openHolds >= this.#context.limits.holdsPerLaneMax;
  }

  /** Reports when the brake goes on or off. The lane calls it whenever its holds have changed. */
  watch(): void {
    const { isOn } = this;
    if (isOn === this.#isReported) return;
    const { events, name } = this.#context;
    const about = { pipeline: name, lane: this.#lane };
    this.#isReported = isOn;
    if (isOn) events.emit("LaneBraked", { ...about, holds: this.#holds.openHolds });
    else events.emit("LaneUnbraked", about);
  }
}
