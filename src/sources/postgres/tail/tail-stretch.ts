import type { Difference } from "./difference.ts";

/** A part of a difference that some lanes still have before them. */
export interface Stretch {
  readonly difference: Difference;
  /** Positions up to here are behind all of them. */
  readonly after: number;
  readonly lanes: readonly number[];
}
