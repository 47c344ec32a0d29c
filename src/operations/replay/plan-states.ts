/** All states of a plan. */
export const PLAN_STATES = ["planned", "running", "paused", "stopped", "done", "cancelled"] as const;

/** `sent`: released, and not yet delivered. `left`: skipped, because it had changed. */
export const ITEM_STATES = ["waiting", "sent", "done", "failed", "left"] as const;

/** One of the states of a plan. */
export type PlanState = (typeof PLAN_STATES)[number];
/** One of the states of an event in a plan. */
export type ItemState = (typeof ITEM_STATES)[number];
