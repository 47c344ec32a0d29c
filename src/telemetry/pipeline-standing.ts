import type { BacklogCount } from "./backlog-watch.ts";
import type { Condition } from "./condition.ts";

/** What the relay's schema last reported of a pipeline. */
export interface KnownStanding {
  readonly retrying: number;
  /** By a dead event: what waits behind one that is retried goes on by itself. */
  readonly parkedKeys: number;
  readonly parkedSince: string | null;
  readonly deadSince: string | null;
  readonly pause: { readonly at: string; readonly by: string | null } | null;
}

interface PipelineStanding {
  readonly pipeline: string;
  readonly deadLetters: number;
  readonly deadSince: string | null;
  readonly parkedKeys: number;
  readonly parkedSince: string | null;
  readonly pause: { readonly at: string | null; readonly by: string | null } | null;
}

/** A pipeline's dead letters, parked keys and pause: from the schema, the last count and this instance's events. */
export function standingOfPipeline(
  pipeline: string,
  known: KnownStanding | null,
  count: BacklogCount | undefined,
  condition: Pick<Condition, "pauseOf">,
): PipelineStanding {
  const pause = condition.pauseOf(pipeline);
  const since = pause === null ? null : { at: new Date(pause.sinceMs).toISOString(), by: pause.by };
  return {
    pipeline,
    deadLetters: count?.found?.dead ?? 0,
    deadSince: known?.deadSince ?? null,
    parkedKeys: known?.parkedKeys ?? 0,
    parkedSince: known?.parkedSince ?? null,
    pause: known?.pause ?? since,
  };
}

/** A pipeline counts as stalled when events wait for this long and none was delivered for as long. */
const STALLED_MS = 60_000;

interface StallFacts {
  readonly pipeline: string;
  readonly destination: string;
  readonly count: BacklogCount | undefined;
  readonly known: KnownStanding | null;
  /** How long no instance has delivered any of its events; null if unknown. */
  readonly idleForMs: number | null;
  readonly unreachable: readonly string[];
}

/**
 * A stalled pipeline. Null while events are delivered, none wait, or there is another explanation: events in backoff, a
 * pause, a limit, or a destination that accepts nothing.
 */
export function stallOf(
  { destination, known, count, pipeline, idleForMs, unreachable }: StallFacts,
  condition: Condition,
): { readonly pipeline: string; readonly pending: number; readonly forMs: number } | null {
  const found = count === undefined || count.hasFailed ? null : count.found;
  if (found === null || known === null || idleForMs === null) return null;
  const isOwn = (it: { readonly pipeline: string }) => it.pipeline === pipeline;
  const isExplained =
    known.pause !== null ||
    condition.isPaused(pipeline) ||
    known.retrying > 0 ||
    condition.limitOf(pipeline) !== null ||
    unreachable.includes(destination) ||
    condition.openCircuits().some((circuit) => circuit.destination === destination) ||
    [...condition.brokenSources(), ...condition.brakedLanes(), ...condition.failingLanes()].some(isOwn);
  const isIdle = idleForMs >= STALLED_MS && (found.oldestAgeMs ?? 0) >= STALLED_MS && found.pending > 0;
  return isIdle && !isExplained ? { pipeline, pending: found.pending, forMs: idleForMs } : null;
}
