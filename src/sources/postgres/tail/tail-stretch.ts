import type { LogPosition } from "../log/log-kind.ts";
import type { Difference } from "./difference.ts";

/** A part of a difference that some lanes have yet to read. */
export interface Stretch {
  readonly difference: Difference;
  /** All of these lanes have passed the positions up to here. */
  readonly after: number;
  readonly lanes: readonly number[];
}

/** What the lanes have yet to read: the rest of each lane's difference, and everything since. */
export function stretchesBefore(heads: ReadonlyMap<number, LogPosition<Difference>>): readonly Stretch[] {
  const stretches = new Map<string, Stretch>();
  const add = (difference: Difference, after: number, lane: number) => {
    const key = JSON.stringify([difference.from, difference.to, after]);
    const lanes = [...(stretches.get(key)?.lanes ?? []), lane];
    stretches.set(key, { difference, after, lanes });
  };
  for (const [lane, { segment, mark }] of heads) {
    const { from, to } = segment;
    add({ from, to }, mark, lane);
    if (to !== null) add({ from: to, to: null }, 0, lane);
  }
  return [...stretches.values()];
}
