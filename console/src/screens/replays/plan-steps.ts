import type { Plan } from "../../kit/types.ts";

interface Step {
  readonly label: string;
  readonly state: "past" | "now" | "to come" | "failed";
}

const STAGES = ["first", "ten", "rest"] as const;
const LABELS = { first: "One event", ten: "Ten more", rest: "The rest" } as const;

type Stepped = Pick<Plan, "action" | "stage" | "state">;

/** The way of a plan, for a picture of it: what is past, where it stands, what is to come. */
export function stepsOf({ action, stage, state }: Stepped): readonly Step[] {
  const stages = action === "discard" ? (["rest"] as const) : STAGES;
  const at = Math.max(0, stages.indexOf(stage as never));
  const isOver = state === "done";
  const middle = stages.map((it, index): Step => {
    const label = action === "discard" ? "Discarding" : LABELS[it];
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

function lastLabel(state: Plan["state"]): string {
  return state === "stopped" || state === "cancelled" ? state.charAt(0).toUpperCase() + state.slice(1) : "Done";
}

/** Until it is through, at the pace since its start; null while that cannot be told. */
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
