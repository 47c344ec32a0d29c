import type { Lane } from "./lane.ts";

/** What the poller knows of the run that it is reading. */
export interface OpenRun {
  readonly number: number;
  readonly lanes: ReadonlyMap<number, Lane>;
  /** Lanes that get no more events from this run. */
  readonly leftOut: Set<number>;
  /** Keys with an event that this run returned and no lane took: their later events must not overtake it. */
  readonly passedOver: Set<string>;
  hasRefused: boolean;
  rows: number;
  claimed: number;
}

export function openRun(number: number, lanes: readonly Lane[]): OpenRun {
  const byNumber = new Map(lanes.map((lane) => [lane.grant.lane, lane]));
  return { number, lanes: byNumber, leftOut: new Set(), passedOver: new Set(), hasRefused: false, rows: 0, claimed: 0 };
}
