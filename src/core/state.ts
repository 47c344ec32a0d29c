/** The life of an event. ARCHITECTURE.md draws the same edges; a test compares the two. */
export type EventState = "PENDING" | "DELIVERING" | "DELIVERED" | "DEAD";

export type Transition = "claim" | "hand back" | "deliver" | "fail" | "reap" | "exhaust" | "reject" | "replay";

const EDGES: Readonly<Record<EventState, Readonly<Partial<Record<Transition, EventState>>>>> = {
  PENDING: { claim: "DELIVERING" },
  DELIVERING: {
    deliver: "DELIVERED",
    fail: "PENDING",
    reap: "PENDING",
    "hand back": "PENDING",
    exhaust: "DEAD",
    reject: "DEAD",
  },
  DELIVERED: { replay: "PENDING" },
  DEAD: { replay: "PENDING" },
};

/** The state that a transition leads to, or undefined where the state does not allow it. */
export function next(state: EventState, transition: Transition): EventState | undefined {
  return EDGES[state][transition];
}

export interface Edge {
  readonly from: EventState;
  readonly transition: Transition;
  readonly to: EventState;
}

export function edges(): Edge[] {
  return (Object.keys(EDGES) as EventState[]).flatMap((from) =>
    (Object.entries(EDGES[from]) as [Transition, EventState][]).map(([transition, to]) => ({ from, transition, to })),
  );
}
