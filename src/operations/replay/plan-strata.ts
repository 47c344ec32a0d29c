import { destinationOf } from "../../postgres/pipelines.ts";
import { destinationSql } from "../pipelines/pipelines.ts";
import type { ItemState } from "./frozen-plan.ts";

/** Events with the same destination, error and type: the outcome of one predicts that of the others. */
export interface Stratum {
  /** Null in the last one when there are too many: it combines all others. */
  readonly destination: string | null;
  readonly type: string | null;
  /** The error group; null for delivered events. */
  readonly group: string | null;
  readonly error: string | null;
  readonly count: number;
}

/** A stratum of a plan with its progress. */
export interface PlanStratum extends Stratum {
  readonly sent: number;
  readonly done: number;
  readonly failed: number;
  readonly left: number;
  /** Delivered since the last start of the plan. */
  readonly passed: number;
  /** Why the plan does not continue with it; null while it may. */
  readonly failure: string | null;
}

/** Each has a canary of its own; the smaller ones share one. More only where there are more destinations. */
export const STRATA_MAX = 20;
const FAILURE_CHARACTERS_MAX = 500;

/** The progress of a new plan. */
export const FRESH_STRATUM = { sent: 0, done: 0, failed: 0, left: 0, passed: 0, failure: null };

/**
 * The largest strata, with the rest combined. The largest one of each destination is always among them: no destination
 * gets the rest of a plan untested. Expects the largest first.
 */
export function topStrata(strata: readonly Stratum[]): readonly Stratum[] {
  const ofDestinations = new Map(strata.toReversed().map((it) => [it.destination, it]));
  const kept = new Set(ofDestinations.values());
  for (const stratum of strata) if (kept.size < STRATA_MAX) kept.add(stratum);
  if (kept.size === strata.length) return strata;
  const count = strata.filter((it) => !kept.has(it)).reduce((sum, it) => sum + it.count, 0);
  return [...strata.filter((it) => kept.has(it)), { destination: null, type: null, group: null, error: null, count }];
}

/** Destination, type, fingerprint, error and count, in the order of a row. */
export function stratumOf(row: readonly (string | null | undefined)[]): Stratum {
  const [destination = null, type = null, group = null, error = null, count] = row;
  return { destination, type, group, error, count: Number(count) };
}

/** For plans of an earlier version, which had one canary for all. */
export function onlyStratum(count: number, progress: Readonly<Record<ItemState, number>>): PlanStratum {
  const { done, failed, left, sent } = progress;
  return {
    destination: null,
    type: null,
    group: null,
    error: null,
    count,
    sent,
    done,
    failed,
    left,
    passed: 0,
    failure: null,
  };
}

/** The index of an event's stratum: the last one when no other matches. */
export function stratumFinder(
  strata: readonly PlanStratum[],
): (pipeline: string, type: string, group: string | null) => number {
  const places = new Map(
    strata.map(({ destination, group, type }, index) => [JSON.stringify([destination, type, group]), index]),
  );
  return (pipeline, type, group) =>
    places.get(JSON.stringify([destinationOf(pipeline), type, group])) ?? strata.length - 1;
}

/**
 * The same in SQL: joins `item` to the index of its stratum, counted from 1, as `as.place`. Uses the parameters of
 * `stratumArrays`, from `$first` on.
 */
export function stratumJoinSql(item: string, as: string, first: number): string {
  return `left join unnest($${first}::text[], $${first + 1}::text[], $${first + 2}::text[]) with ordinality
    ${as} (destination, event_type, fingerprint, place) on ${as}.destination = ${destinationSql(`${item}.pipeline`)}
    and ${as}.event_type = ${item}.event_type and ${as}.fingerprint is not distinct from ${item}.fingerprint`;
}

/** The parameters of `stratumJoinSql`. */
export function stratumArrays(strata: readonly PlanStratum[]): readonly (readonly (string | null)[])[] {
  return [
    strata.map(({ destination }) => destination),
    strata.map(({ type }) => type),
    strata.map(({ group }) => group),
  ];
}

/** Events of a stratum that have changed their state; waiting ones are derived. */
interface StratumChange {
  readonly stratum: number;
  readonly from: ItemState;
  readonly to: ItemState;
  readonly count?: number;
  readonly failure?: string | null;
}

/** The strata after state changes. */
export function changedStrata(
  strata: readonly PlanStratum[],
  changes: readonly StratumChange[],
): readonly PlanStratum[] {
  const next = strata.map((stratum) => ({ ...stratum }));
  for (const { count = 1, failure = null, from, stratum, to } of changes) {
    const it = next[stratum];
    if (it === undefined) continue;
    if (from !== "waiting") it[from] -= count;
    if (to !== "waiting") it[to] += count;
    if (to === "done") it.passed += count;
    it.failure ??= failure === null ? null : failure.slice(0, FAILURE_CHARACTERS_MAX);
  }
  return next;
}

/** Waiting events of a stratum. */
export function waitingIn({ count, done, failed, left, sent }: PlanStratum): number {
  return count - done - failed - left - sent;
}

/** Description for people. */
export function stratumText({ destination, group, type }: Stratum): string {
  if (destination === null) return "one of the smaller strata";
  return `${type} to ${destination}${group === null ? "" : `, error ${group}`}`;
}
