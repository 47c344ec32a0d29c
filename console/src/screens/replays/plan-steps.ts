import type { Plan } from "../../kit/types.ts";

interface Step {
  readonly label: string;
  readonly state: "past" | "now" | "to come" | "failed";
}

const STAGES = ["first", "ten", "rest"] as const;
const TEN = 10;

type Stepped = Pick<Plan, "action" | "count" | "stage" | "state"> & { readonly strata: readonly unknown[] };

/** The stages of a plan for the stepper: past, current and to come. Only stages that the plan has. */
export function stepsOf(plan: Stepped): readonly Step[] {
  const { stage, state } = plan;
  const labels = labelsOf(plan);
  const at = Math.min(plan.action === "discard" ? 0 : STAGES.indexOf(stage), labels.length - 1);
  const isOver = state === "done";
  const middle = labels.map((label, index): Step => {
    if (isOver || (state !== "planned" && index < at)) return { label, state: "past" };
    if (state === "planned" || index > at) return { label, state: "to come" };
    return { label, state: state === "stopped" || state === "cancelled" ? "failed" : "now" };
  });
  return [
    { label: "Plan", state: state === "planned" ? "now" : "past" },
    ...middle,
    { label: lastLabel(state), state: isOver ? "past" : "to come" },
  ];
}

/** A plan of two events has no "ten more" and no rest. Each kind of event is tested separately. */
function labelsOf({ action, count, strata }: Stepped): readonly string[] {
  if (action === "discard") return ["Discarding"];
  const kinds = Math.max(1, strata.length);
  if (count <= 1) return ["The event"];
  if (count <= kinds) return [`One of each of ${kinds} kinds`];
  const first = kinds === 1 ? "One event" : `One of each of ${kinds} kinds`;
  if (count <= kinds + TEN) return [first, count - kinds === 1 ? "The other one" : `The other ${count - kinds}`];
  return [
    first,
    kinds === 1 ? "Ten more" : "Up to ten more of each",
    kinds === 1 ? `The other ${count - 1 - TEN}` : "The others",
  ];
}

function lastLabel(state: Plan["state"]): string {
  return state === "stopped" || state === "cancelled" ? state.charAt(0).toUpperCase() + state.slice(1) : "Done";
}

/** Remaining time at the rate since the start; null while it is unknown. */
export function leftMs(
  { progress, startedAt, state }: Pick<Plan, "progress" | "startedAt" | "state">,
  now: number,
): number | null {
  const over = progress.done + progress.failed + progress.left;
  const elapsed = startedAt === null ? 0 : now - Date.parse(startedAt);
  if (state !== "running" || over < 20 || elapsed < 2_000) return null;
  return ((progress.waiting + progress.sent) / over) * elapsed;
}

/** `Replay of 12 events`. */
export function planTitle({ action, subject }: Pick<Plan, "action" | "subject">, events: string): string {
  if (action === "discard") return `Discarding ${events}`;
  return subject === "delivered" ? `Replay of ${events} that were delivered` : `Replay of ${events}`;
}
