import { Button } from "../kit/button.tsx";
import { useDemoState } from "./demo-state.ts";
import { Faults } from "./faults.tsx";
import { Guide } from "./guide.tsx";
import { useRemembered } from "./remembered.ts";
import { Verdict } from "./verdict.tsx";

/** The guided first minute and its faults; see the README beside it. */
export function DemoPanel() {
  const { state, isGone } = useDemoState();
  const [guide, setGuide] = useRemembered("guide", "shown");
  const [faults, setFaults] = useRemembered("faults", "hidden");
  if (isGone) {
    return (
      <aside class="demo" aria-label="Demo">
        <p class="demo-starting" role="alert">
          The demo does not answer: it was stopped, and all that it held is gone. Begin another one with npm start; this
          page goes on by itself.
        </p>
      </aside>
    );
  }
  if (state === null) return null;
  const areFaultsShown = faults === "shown";
  // Nobody here can break, mend or watch a broker of the user's.
  const hasGuide = state.destination.broker === null;
  return (
    <aside class="demo" aria-label="Demo">
      {state.startingWith !== null && <p class="demo-starting">Starting {state.startingWith} ...</p>}
      {hasGuide && guide === "shown" && <Guide state={state} onHide={() => setGuide("hidden")} />}
      <div class="demo-bar">
        <Verdict state={state} />
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
