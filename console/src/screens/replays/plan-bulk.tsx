import { ActionButton } from "../../kit/action-button.tsx";
import { apiPost } from "../../kit/api.ts";
import { askFor } from "../../kit/dialog.tsx";
import { plural } from "../../kit/format.ts";
import { segment } from "../../kit/place.ts";
import { toast } from "../../kit/toast.tsx";
import type { Plan } from "../../kit/types.ts";
import { planVerbLine } from "../cli-lines.ts";

interface BulkProps {
  readonly chosen: readonly Plan[];
  done(): void;
}

const isOver = ({ state }: Plan) => state === "done" || state === "cancelled";

/** Pauses or cancels several plans. Plans are run one by one, after the operator has reviewed each. */
export function PlanBulk({ chosen, done }: BulkProps) {
  if (chosen.length === 0) return null;
  const running = chosen.filter(({ state }) => state === "running");
  const open = chosen.filter((it) => !isOver(it));
  return (
    <span class="row">
      {open.length === 0 && <span class="soft">These plans have ended.</span>}
      {open.length > 0 && (
        <ActionButton icon="cross" onClick={() => ask("cancel", open, done)}>
          {`Cancel ${plural(open.length, "plan")}`}
        </ActionButton>
      )}
      {running.length > 0 && (
        <ActionButton icon="pause" kind="primary" onClick={() => ask("pause", running, done)}>
          {`Pause ${plural(running.length, "plan")}`}
        </ActionButton>
      )}
    </span>
  );
}

function ask(verb: "pause" | "cancel", plans: readonly Plan[], done: () => void): void {
  const what = plural(plans.length, "plan");
  const isCancel = verb === "cancel";
  askFor({
    title: `${isCancel ? "Cancel" : "Pause"} ${what}?`,
    text: isCancel
      ? "The plans end and cannot be run again. Events that were sent or discarded stay so; the others are not changed."
      : "Events in flight are finished; no more are sent until you resume the plans.",
    confirm: isCancel ? `Cancel ${what}` : "Pause",
    isDangerous: isCancel,
    command: (reason) => plans.map(({ id }) => planVerbLine(verb, id, reason)).join("\n"),
    run: async (reason) => {
      const body = reason === "" ? {} : { reason };
      const ended = await Promise.allSettled(
        plans.map(({ id }) => apiPost<Plan>(`/replays/${segment(id)}/${verb}`, body)),
      );
      const failed = ended.filter((it) => it.status === "rejected");
      toast(`${plural(plans.length - failed.length, "plan")} ${isCancel ? "cancelled" : "paused"}`);
      for (const { reason: error } of failed.slice(0, 3)) {
        toast(error instanceof Error ? error.message : String(error), { tone: "bad" });
      }
      done();
    },
  });
}
