import { countText } from "../kit/format.ts";
import type { DemoState } from "./demo-state.ts";

/** Compares written events with messages that arrived at the destination, independently of the relay. */
export function ArrivalCounts({ state: { destination, relays } }: { readonly state: DemoState }) {
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
