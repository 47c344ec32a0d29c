import type { Look } from "./backlog-watch.ts";

/** What waits, summed up over some pipelines. */
export interface Waiting {
  /** Null where one of them could not be counted. */
  readonly pending: number | null;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
}

const UNKNOWN: Waiting = { pending: null, isEstimate: false, oldestAgeMs: null };

/** Of these pipelines, by looks that did not fail and are not older. */
export function waitingOf(looks: ReadonlyMap<string, Look>, pipelines: readonly string[], sinceMs: number): Waiting {
  const found = pipelines.flatMap((pipeline) => {
    const look = looks.get(pipeline);
    return look === undefined || look.hasFailed || look.atMs < sinceMs ? [] : (look.found ?? []);
  });
  if (found.length === 0 || found.length < pipelines.length) return UNKNOWN;
  const ages = found.flatMap(({ oldestAgeMs }) => oldestAgeMs ?? []);
  return {
    pending: found.reduce((total, { pending }) => total + pending, 0),
    isEstimate: found.some(({ isEstimate }) => isEstimate),
    oldestAgeMs: ages.length === 0 ? null : Math.round(Math.max(...ages)),
  };
}
