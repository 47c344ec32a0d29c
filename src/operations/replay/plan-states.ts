export const PLAN_STATES = ["planned", "running", "paused", "stopped", "done", "cancelled"] as const;

/** `sent`: on its way again, and not yet known to be delivered. `left`: no longer as the plan had found it. */
export const ITEM_STATES = ["waiting", "sent", "done", "failed", "left"] as const;

export type PlanState = (typeof PLAN_STATES)[number];
export type ItemState = (typeof ITEM_STATES)[number];
