import type { LogPlace } from "../log/log-kind.ts";
import type { Difference } from "./difference.ts";

/** A part of a difference that some lanes still have before them. */
export interface Stretch {
  readonly difference: Difference;
  /** Positions up to here are behind all of them. */
  readonly after: number;
  readonly lanes: readonly number[];
}

/** What lies before the lanes: the rest of the difference that each is in, and everything since. */
export function stretchesBefore(heads: ReadonlyMap<number, LogPlace<Difference>>): readonly Stretch[] {
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
