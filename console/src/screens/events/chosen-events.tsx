import { ActionButton } from "../../kit/action-button.tsx";
import { quotedValue } from "../../kit/filter/filter-text.ts";
import { plural } from "../../kit/format.ts";
import { askForPlan } from "../replays/plan-dialog.tsx";
import { type Chosen, replayProblem, sourceProblem } from "./chosen-rows.ts";

/** Actions on the selected events. Each creates a plan first. */
export function ChosenActions({ chosen }: { readonly chosen: Chosen }) {
  const rows = [...chosen.values()];
  const [first] = rows;
  if (first === undefined) return null;
  const what = plural(rows.length, "event");
  const plan = (action: "replay" | "discard") =>
    askForPlan(
      {
        action,
        subject: first.state === "dead" ? "dead" : "delivered",
        ids: rows.map(({ id }) => id),
        q: `source:${quotedValue(first.source)}`,
      },
      what,
    );
  const isDead = rows.every(({ state }) => state === "dead");
  return (
    <span class="row">
      <ActionButton
        icon="bin"
        whyNot={isDead ? sourceProblem(rows) : "Only dead events can be discarded: select only dead ones."}
        onClick={() => plan("discard")}
      >
        {`Plan to discard ${what}`}
      </ActionButton>
      <ActionButton icon="replays" kind="primary" whyNot={replayProblem(rows)} onClick={() => plan("replay")}>
        {`Plan to replay ${what}`}
      </ActionButton>
    </span>
  );
}
