import { useEffect } from "preact/hooks";
import { Button } from "../kit/button.tsx";
import { Icon } from "../kit/icons.tsx";
import { usePlace } from "../kit/router.ts";
import { ask, type DemoState, useRemembered } from "./demo-state.ts";

/** The guided first minute: break it, see it, fix it, replay it. */
export function Guide({ state, onHide }: { readonly state: DemoState; onHide(): void }) {
  const hasSeen = useHasSeen(state);
  const done = STEPS.map((step) => step.isDone(state, hasSeen));
  const at = done.indexOf(false);
  const current = STEPS[at];
  return (
    <section class="demo-guide" aria-label="The first minute">
      <ol>
        {STEPS.map(({ name }, index) => (
          <li
            key={name}
            class={done[index] ? "done" : index === at ? "current" : ""}
            aria-current={index === at ? "step" : undefined}
          >
            <span class="mark">{done[index] ? <Icon name="check" /> : index + 1}</span>
            <span>
              {name}
              {done[index] && <span class="unseen"> (done)</span>}
            </span>
          </li>
        ))}
      </ol>
      <div class="demo-step" aria-live="polite">
        {current === undefined ? <Ended state={state} /> : <Current step={current} />}
      </div>
      <Button kind="quiet" icon="cross" label="Hide the first minute" onClick={onHide} />
    </section>
  );
}

function Current({ step: { text, actions } }: { readonly step: Step }) {
  return (
    <>
      <p>{text}</p>
      <div class="demo-actions">
        {actions.map(({ fault, href, label, on }, index) => (
          <Button
            key={label}
            kind={index === 0 ? "primary" : "plain"}
            href={href}
            onClick={fault === undefined ? undefined : () => void ask(on === undefined ? { fault } : { fault, on })}
          >
            {label}
          </Button>
        ))}
      </div>
    </>
  );
}

function Ended({ state }: { readonly state: DemoState }) {
  const { lost, outOfOrder, repeated } = state.destination;
  const isWell = lost === 0 && outOfOrder === 0 && repeated === 0;
  return (
    <p>
      That was the first minute: broken, seen, fixed, replayed.
      {isWell && " No event was lost or duplicated, and every key kept its order."}
    </p>
  );
}

/** The step counts only after a fault was injected. Remembered for this run of the demo. */
function useHasSeen({ runId, tour }: DemoState): boolean {
  const { path } = usePlace();
  const [seenIn, remember] = useRemembered("seen", "");
  const isSeen = tour.isBroken && showsFailure(path);
  useEffect(() => {
    if (isSeen) remember(runId);
  }, [isSeen, runId, remember]);
  return seenIn === runId;
}

interface Step {
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
const STEPS: readonly Step[] = [
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
function showsFailure(path: string): boolean {
  return path === "/dead-letters" || path === "/keys" || path.startsWith("/events/");
}
