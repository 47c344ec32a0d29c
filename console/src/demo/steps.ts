import type { DemoState } from "./demo-state.ts";

export interface Step {
  readonly name: string;
  readonly text: string;
  /** What to press, or where to go: label with a wish or an address. */
  readonly ways: readonly {
    readonly label: string;
    readonly fault?: string;
    readonly on?: boolean;
    readonly href?: string;
  }[];
  isDone(state: DemoState, hasSeen: boolean): boolean;
}

/** Each is ticked off by what has really happened, never by a click alone. */
export const STEPS: readonly Step[] = [
  {
    name: "Watch",
    text: "Four services write events into their outboxes; the relay carries them to a broker and to two subscribers.",
    ways: [{ label: "Overview", href: "#/" }],
    isDone: ({ tour }) => tour.isFlowing,
  },
  {
    name: "Break it",
    text: "Write an event that its receiver refuses, with two more of the same key behind it. Or take the whole destination away.",
    ways: [
      { label: "Write a poison event", fault: "poison" },
      { label: "Stop the destination", fault: "down", on: true },
    ],
    isDone: ({ tour }) => tour.isBroken,
  },
  {
    name: "See it",
    text: "What is refused is dead with its reason, and its key waits; all other keys go on. Find the event and read why.",
    ways: [
      { label: "Dead letters", href: "#/dead-letters" },
      { label: "Blocked keys", href: "#/keys" },
    ],
    isDone: (_, hasSeen) => hasSeen,
  },
  {
    name: "Mend it",
    text: "Deploy the fix: the receiver takes such events now, and every fault of the destination is off.",
    ways: [{ label: "Mend the destination", fault: "mend" }],
    isDone: ({ tour }) => tour.isMended,
  },
  {
    name: "Replay it",
    text: "Make a plan of what is dead, read its dry run, then run it: one event first, then ten, then the rest.",
    ways: [
      { label: "Dead letters", href: "#/dead-letters" },
      { label: "Replays", href: "#/replays" },
    ],
    isDone: ({ tour }) => tour.isMended && tour.plansDone > 0,
  },
];

/** The screens on which a failure can be seen. */
export function showsFailure(path: string): boolean {
  return path === "/dead-letters" || path === "/keys" || path.startsWith("/events/");
}
