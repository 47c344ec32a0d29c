import type { PlanAction, PlanProgress, PlanStage } from "./frozen-plan.ts";
import { type PlanStratum, stratumText, waitingIn } from "./plan-strata.ts";

/** The state of a plan at the start of a round. */
interface RoundFacts {
  readonly action: PlanAction;
  readonly stage: PlanStage;
  readonly progress: PlanProgress;
  readonly strata: readonly PlanStratum[];
  /** Failures since the last start of the plan. */
  readonly failedNow: number;
  /** New failures. */
  readonly failures: readonly RoundFailure[];
}

/** An event of a plan that has failed again. */
export interface RoundFailure {
  readonly id: string;
  readonly reason: string;
  /** It failed with the same error as before. */
  readonly isSame: boolean;
  /** Its index in the list of strata. */
  readonly stratum: number;
}

/** What a round does next. */
export type Decision =
  | { readonly kind: "stop"; readonly why: string }
  | { readonly kind: "done" }
  /** Release at most this many more; 0 while others must settle first. `rooms`: per stratum. */
  | { readonly kind: "go"; readonly stage: PlanStage; readonly room: number; readonly rooms: readonly number[] };

const TEN = 10;
/**
 * Limit of events in flight: a multiple of the delivered ones, within bounds, so that an error costs no more than
 * success has earned.
 */
const IN_FLIGHT = { perArrival: 4, min: 50, max: 2_000 };
const DISCARDED_AT_ONCE = 1_000;
/** Other failures in the last stage: from here on the events are not the problem. */
const OTHER_FAILURES_MAX = 20;
/** More than any plan contains. */
const UNBOUNDED = 1_000_000_000;

/** Pure: decides from the stored rows alone, so that any runner at any time decides alike. */
export function decide(facts: RoundFacts): Decision {
  const { action, progress, strata } = facts;
  const stop = reasonToStop(facts);
  if (stop !== null) return { kind: "stop", why: stop };
  if (progress.waiting === 0 && progress.sent === 0) return { kind: "done" };
  const unbounded = strata.map(() => UNBOUNDED);
  if (action === "discard") return { kind: "go", stage: "rest", room: DISCARDED_AT_ONCE, rooms: unbounded };
  const stage = isPassed(facts) ? stageAfter(facts.stage) : facts.stage;
  const rooms = strata.map((stratum) => roomOf(stratum, stage));
  if (stage !== "rest") return { kind: "go", stage, room: rooms.reduce((sum, it) => sum + it, 0), rooms };
  const doneNow = strata.reduce((sum, { passed }) => sum + passed, 0);
  const most = Math.min(IN_FLIGHT.max, Math.max(IN_FLIGHT.min, IN_FLIGHT.perArrival * doneNow));
  return { kind: "go", stage, room: Math.max(0, most - progress.sent), rooms };
}

/** The stage that follows. */
export function stageAfter(stage: PlanStage): PlanStage {
  return stage === "first" ? "ten" : "rest";
}

/** Everything has settled, and each stratum has delivered as many as this stage requires or has no more. */
function isPassed({ progress, stage, strata }: RoundFacts): boolean {
  const wanted = stage === "first" ? 1 : 1 + TEN;
  return progress.sent === 0 && strata.every((it) => it.passed >= wanted || waitingIn(it) === 0) && someArrived(strata);
}

function someArrived(strata: readonly PlanStratum[]): boolean {
  return strata.some(({ passed }) => passed > 0);
}

/**
 * A stratum that could not be tried before, because its events wait behind others, starts with one event in any stage.
 */
function roomOf({ passed, sent }: PlanStratum, stage: PlanStage): number {
  if (stage === "first" || passed === 0) return Math.max(0, 1 - passed - sent);
  if (stage === "ten" || passed <= TEN) return Math.max(0, 1 + TEN - passed - sent);
  return UNBOUNDED;
}

/** A failure that stops the plan: one of the first of its stratum, or one with the same error as before. */
export function isDecisive(
  { isSame, stratum }: RoundFailure,
  stage: PlanStage,
  strata: readonly PlanStratum[],
): boolean {
  return isSame || stage !== "rest" || strata[stratum]?.passed === 0;
}

function reasonToStop({ failedNow, failures, stage, strata }: RoundFacts): string | null {
  const [first] = failures;
  if (first === undefined) return null;
  const named = ({ id, stratum }: RoundFailure) => {
    const it = strata[stratum];
    return it === undefined || strata.length === 1 ? id : `${id} (${stratumText(it)})`;
  };
  const same = failures.find(({ isSame }) => isSame);
  if (same !== undefined) return `The same error came back with ${named(same)}: ${same.reason}`;
  const decisive = failures.find((failure) => isDecisive(failure, stage, strata));
  if (decisive !== undefined) return `${named(decisive)}, one of the first, failed again: ${decisive.reason}`;
  if (failedNow < OTHER_FAILURES_MAX) return null;
  return `${failedNow} failed again, the last one ${named(first)}: ${first.reason}`;
}
