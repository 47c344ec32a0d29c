import type { PlanAction, PlanProgress, PlanStage } from "./frozen-plan.ts";

/** What a round knows of its plan. */
interface RoundFacts {
  readonly action: PlanAction;
  readonly stage: PlanStage;
  readonly progress: PlanProgress;
  /** Delivered since the plan was started last, and failed since then. */
  readonly doneNow: number;
  readonly failedNow: number;
  /** What has just failed. */
  readonly failures: readonly RoundFailure[];
}

export interface RoundFailure {
  readonly id: string;
  readonly reason: string;
  /** The error for which it was dead before came again. */
  readonly isSame: boolean;
}

export type Decision =
  | { readonly kind: "stop"; readonly why: string }
  | { readonly kind: "done" }
  /** Send so many more, at most; none while others have to come back first. */
  | { readonly kind: "go"; readonly stage: PlanStage; readonly room: number };

const TEN = 10;
/** On the way at once: a few times as many as have arrived, within bounds: an error costs what success has earned. */
const IN_FLIGHT = { perArrival: 4, min: 50, max: 2_000 };
const DISCARDED_AT_ONCE = 1_000;
/** Failures of other kinds in the last stage: from here on it is not the events that are bad. */
const OTHER_FAILURES_MAX = 20;

/** Pure: what the rows of the database say decides alone, whoever asks and how often. */
export function decide(facts: RoundFacts): Decision {
  const { action, doneNow, failedNow, failures, progress, stage } = facts;
  const stop = reasonToStop(stage, failures, failedNow);
  if (stop !== null) return { kind: "stop", why: stop };
  if (progress.waiting === 0 && progress.sent === 0) return { kind: "done" };
  if (action === "discard") return { kind: "go", stage: "rest", room: DISCARDED_AT_ONCE };
  const next = nextStage(stage, doneNow, progress);
  if (next === "first") return { kind: "go", stage: next, room: progress.sent === 0 ? 1 : 0 };
  if (next === "ten") return { kind: "go", stage: next, room: Math.max(0, 1 + TEN - doneNow - progress.sent) };
  const most = Math.min(IN_FLIGHT.max, Math.max(IN_FLIGHT.min, IN_FLIGHT.perArrival * doneNow));
  return { kind: "go", stage: next, room: Math.max(0, most - progress.sent) };
}

function nextStage(stage: PlanStage, doneNow: number, { sent }: PlanProgress): PlanStage {
  if (stage === "first" && doneNow >= 1 && sent === 0) return "ten";
  if (stage === "ten" && doneNow >= 1 + TEN && sent === 0) return "rest";
  return stage;
}

function reasonToStop(stage: PlanStage, failures: readonly RoundFailure[], failedNow: number): string | null {
  const [first] = failures;
  if (first === undefined) return null;
  const same = failures.find(({ isSame }) => isSame);
  if (same !== undefined) return `The same error came back with ${same.id}: ${same.reason}`;
  if (stage !== "rest") return `${first.id}, one of the first, failed again: ${first.reason}`;
  if (failedNow < OTHER_FAILURES_MAX) return null;
  return `${failedNow} failed again, the last one ${first.id}: ${first.reason}`;
}
