export type EventState = "PENDING" | "DELIVERING" | "DELIVERED" | "DEAD";

interface Edge {
  readonly from: EventState;
  readonly transition: "claim" | "hand back" | "deliver" | "fail" | "reap" | "exhaust" | "reject" | "replay";
  readonly to: EventState;
}

/** The life of an event. ARCHITECTURE.md draws the same edges; a test compares the two. */
export const EDGES: readonly Edge[] = [
  { from: "PENDING", transition: "claim", to: "DELIVERING" },
  { from: "DELIVERING", transition: "deliver", to: "DELIVERED" },
  { from: "DELIVERING", transition: "fail", to: "PENDING" },
  { from: "DELIVERING", transition: "reap", to: "PENDING" },
  { from: "DELIVERING", transition: "hand back", to: "PENDING" },
  { from: "DELIVERING", transition: "exhaust", to: "DEAD" },
  { from: "DELIVERING", transition: "reject", to: "DEAD" },
  { from: "DELIVERED", transition: "replay", to: "PENDING" },
  { from: "DEAD", transition: "replay", to: "PENDING" },
];
