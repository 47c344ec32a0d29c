import { Button } from "../kit/button.tsx";
import { countText } from "../kit/format.ts";
import { type DemoState, useDemoState, useRemembered } from "./demo-state.ts";
import { Faults } from "./faults.tsx";
import { Guide } from "./guide.tsx";

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

/** Compares written events with messages that arrived at the destination, independently of the relay. */
function ArrivalCounts({ state: { destination, relays } }: { readonly state: DemoState }) {
  const { broker } = destination;
  if (broker !== null) return <span class="demo-arrivals">Events go to {broker}.</span>;
  const { arrived, lost, outOfOrder, outstanding, repeated } = destination;
  return (
    <dl class="demo-arrivals" aria-label="What arrived">
      <Figure name="arrived" value={arrived} />
      <Figure name="in flight" value={outstanding} />
      <Figure name="lost" value={lost} isBad={lost > 0} />
      <Figure name="out of order" value={outOfOrder} isBad={outOfOrder > 0} />
      <Figure name="repeated" value={repeated} />
      <div class="relay">
        <dt>relay</dt>
        <dd>
          {relays
            .map(wordsOf)
            .filter((text) => text !== "")
            .join(", ") || "starting"}
        </dd>
      </div>
    </dl>
  );
}

function Figure({ name, value, isBad }: { readonly name: string; readonly value: number; readonly isBad?: boolean }) {
  return (
    <div class={isBad === undefined ? "" : isBad ? "bad" : "good"} data-figure={name.replaceAll(" ", "-")}>
      <dt>{name}</dt>
      <dd>{countText(value)}</dd>
    </div>
  );
}

function wordsOf({ lanes, state }: DemoState["relays"][number]): string {
  if (state === "stopped") return "";
  return state === "running" ? `running, ${lanes} lanes` : state;
}
