import { useEffect } from "preact/hooks";
import { Button } from "../kit/button.tsx";
import { Icon } from "../kit/icons.tsx";
import { usePlace } from "../kit/router.ts";
import { ask, type DemoState } from "./demo-state.ts";
import { useRemembered } from "./remembered.ts";
import { STEPS, type Step, showsFailure } from "./steps.ts";

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
