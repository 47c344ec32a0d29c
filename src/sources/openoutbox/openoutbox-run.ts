import type { ClaimedEvent, LaneState, Run } from "../../ports/queue-store.ts";

/**
 * A run holds nothing open: each page is a claim of its own, made from what waits at that moment. What was claimed is
 * never shown again by itself.
 */
export class OpenOutboxRun implements Run {
  readonly lanes: readonly LaneState[];
  readonly #claim: Run["next"];
  #ended = false;

  constructor(lanes: readonly LaneState[], claim: Run["next"]) {
    this.lanes = lanes;
    this.#claim = claim;
  }

  async next(rows: number, bytes: number, rooms?: ReadonlyMap<number, number>): Promise<readonly ClaimedEvent[]> {
    return this.#ended ? [] : await this.#claim(rows, bytes, rooms);
  }

  async end(): Promise<void> {
    this.#ended = true;
  }
}
