import type { DemoState } from "./demo-state.ts";

export interface Step {
  readonly name: string;
  readonly text: string;
  /** Buttons and links of the step: a label with a fault request or an address. */
  readonly actions: readonly {
    readonly label: string;
    readonly fault?: string;
    readonly on?: boolean;
    readonly href?: string;
  }[];
  isDone(state: DemoState, hasSeen: boolean): boolean;
}

/** A step is ticked off when its effect has happened, not on a click. */
export const STEPS: readonly Step[] = [
  {
    name: "Watch",
    text: "Four services write events to their outboxes; the relay delivers them to a broker and to two subscribers.",
    actions: [{ label: "Overview", href: "#/" }],
    isDone: ({ tour }) => tour.isFlowing,
  },
  {
    name: "Break it",
    text: "Write an event that the receiver rejects, followed by two more events of the same key. Or stop the whole destination.",
    actions: [
      { label: "Write a poison event", fault: "poison" },
      { label: "Stop the destination", fault: "down", on: true },
    ],
    isDone: ({ tour }) => tour.isBroken,
  },
  {
    name: "See it",
    text: "The rejected event is a dead letter with its reason, and its key is parked; all other keys continue. Find the event and read why it failed.",
    actions: [
      { label: "Dead letters", href: "#/dead-letters" },
      { label: "Blocked keys", href: "#/keys" },
    ],
    isDone: (_, hasSeen) => hasSeen,
  },
  {
    name: "Fix it",
    text: "Deploy the fix: the receiver accepts such events now, and all faults of the destination are off.",
    actions: [{ label: "Fix the destination", fault: "fix" }],
    isDone: ({ tour }) => tour.isFixed,
  },
  {
    name: "Replay it",
    text: "Create a plan from the dead letters, review it, then run it: one event first, then ten, then the rest.",
    actions: [
      { label: "Dead letters", href: "#/dead-letters" },
      { label: "Replays", href: "#/replays" },
    ],
    isDone: ({ tour }) => tour.isFixed && tour.plansDone > 0,
  },
];

/** The screens that show failures. */
export function showsFailure(path: string): boolean {
  return path === "/dead-letters" || path === "/keys" || path.startsWith("/events/");
}
