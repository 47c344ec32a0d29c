import { Button } from "../kit/button.tsx";
import { ArrivalCounts } from "./arrival-counts.tsx";
import { useDemoState } from "./demo-state.ts";
import { Faults } from "./faults.tsx";
import { Guide } from "./guide.tsx";
import { useRemembered } from "./remembered.ts";

/** The guided first minute and the fault switches; see the README in this folder. */
export function DemoPanel() {
  const { state, isGone } = useDemoState();
  const [guide, setGuide] = useRemembered("guide", "shown");
  const [faults, setFaults] = useRemembered("faults", "hidden");
  if (isGone) {
    return (
      <aside class="demo" aria-label="Demo">
        <p class="demo-starting" role="alert">
          The demo does not answer: it was stopped, and its data was removed. Start a new one with npm start; this page
          continues automatically.
        </p>
      </aside>
    );
  }
  if (state === null) return null;
  const areFaultsShown = faults === "shown";
  // The demo cannot break, fix or watch the user's own broker.
  const hasGuide = state.destination.broker === null;
  return (
    <aside class="demo" aria-label="Demo">
      {state.startingWith !== null && <p class="demo-starting">Starting {state.startingWith} ...</p>}
      {hasGuide && guide === "shown" && <Guide state={state} onHide={() => setGuide("hidden")} />}
      <div class="demo-bar">
        <ArrivalCounts state={state} />
        <span class="spring" />
        {hasGuide && guide !== "shown" && (
          <Button kind="quiet" onClick={() => setGuide("shown")}>
            First minute
          </Button>
        )}
        <button
          type="button"
          class="button plain"
          aria-expanded={areFaultsShown}
          onClick={() => setFaults(areFaultsShown ? "hidden" : "shown")}
        >
          <span>{areFaultsShown ? "Hide faults" : "Faults"}</span>
        </button>
      </div>
      {areFaultsShown && <Faults state={state} />}
    </aside>
  );
}
