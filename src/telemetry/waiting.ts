import type { Backlog, Unrouted } from "../ports/queue-store.ts";
import type { BacklogCount } from "./backlog-watch.ts";

/** The backlog of some pipelines, summed up. */
export interface Waiting {
  /** Null if one of the pipelines could not be counted. */
  readonly pending: number | null;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
  /** Events that wait behind a dead letter; null with `pending`. */
  readonly behindDeadLetters: number | null;
}

const UNKNOWN: Waiting = { pending: null, isEstimate: false, oldestAgeMs: null, behindDeadLetters: null };

/** Sums the counts of these pipelines that did not fail and are recent enough. */
export function waitingOf(
  counts: ReadonlyMap<string, BacklogCount>,
  pipelines: readonly string[],
  sinceMs: number,
): Waiting {
  const found = pipelines.flatMap((pipeline) => {
    const count = counts.get(pipeline);
    return count === undefined || count.hasFailed || count.atMs < sinceMs ? [] : (count.found ?? []);
  });
  if (found.length === 0 || found.length < pipelines.length) return UNKNOWN;
  const sum = (count: (backlog: Backlog) => number) => found.reduce((total, backlog) => total + count(backlog), 0);
  const ages = found.flatMap(({ oldestAgeMs }) => oldestAgeMs ?? []);
  return {
    pending: sum(({ pending }) => pending),
    isEstimate: found.some(({ isEstimate }) => isEstimate),
    oldestAgeMs: ages.length === 0 ? null : Math.round(Math.max(...ages)),
    behindDeadLetters: sum(({ behindDead }) => behindDead),
  };
}

/** Over all sources; null where none of them can count. */
export function unroutedIn(figures: readonly Unrouted[]): Pick<Unrouted, "events" | "isEstimate"> | null {
  if (figures.length === 0) return null;
  return {
    events: figures.reduce((sum, { events }) => sum + events, 0),
    isEstimate: figures.some(({ isEstimate }) => isEstimate),
  };
}
