import { ActionButton } from "../../kit/action-button.tsx";
import { apiPost } from "../../kit/api.ts";
import { CliButton } from "../../kit/button.tsx";
import { askFor } from "../../kit/dialog.tsx";
import { plural } from "../../kit/format.ts";
import { segment } from "../../kit/place.ts";
import { RoleNote } from "../../kit/role-note.tsx";
import { toast } from "../../kit/toast.tsx";
import type { Plan } from "../../kit/types.ts";
import { planVerbLine } from "../cli-lines.ts";

type Verb = "run" | "pause" | "cancel";

async function change(plan: Plan, verb: Verb, reason: string, done: string, reload: () => void): Promise<void> {
  await apiPost<Plan>(`/replays/${segment(plan.id)}/${verb}`, reason === "" ? {} : { reason });
  toast(done);
  reload();
}

export function PlanActions({ plan, reload }: { readonly plan: Plan; reload(): void }) {
  const { state, count } = plan;
  const isOver = state === "done" || state === "cancelled";
  return (
    <>
      {!isOver && <RoleNote />}
      <CliButton command={planVerbLine("show", plan.id)} />
      {!isOver && (
        <ActionButton icon="cross" onClick={() => askToCancel(plan, reload)}>
          Cancel
        </ActionButton>
      )}
      {state === "running" && (
        <ActionButton icon="pause" kind="primary" onClick={() => askToPause(plan, reload)}>
          Pause
        </ActionButton>
      )}
      {!isOver && state !== "running" && (
        <ActionButton
          icon="play"
          kind={plan.action === "discard" ? "danger" : "primary"}
          whyNot={count === 0 ? "There is nothing in this plan." : null}
          onClick={() => askToRun(plan, reload)}
        >
          {state === "planned" ? "Run the plan" : state === "paused" ? "Resume" : "Go on"}
        </ActionButton>
      )}
    </>
  );
}

function askToRun(plan: Plan, reload: () => void): void {
  const events = plural(plan.progress.waiting, "event");
  const isDiscard = plan.action === "discard";
  askFor({
    title: plan.state === "planned" ? "Run the plan" : "Go on with the plan",
    text: isDiscard ? (
      <p>
        {events} {plan.progress.waiting === 1 ? "is" : "are"} given up for good: never sent, never replayed.
      </p>
    ) : (
      <>
        <p>
          {events} {plan.progress.waiting === 1 ? "goes" : "go"} out, in order within each key: one first, then ten,
          then the rest. When the same error comes back, it stops by itself.
        </p>
        <p>What is no longer as the plan had found it is left as it is. You can pause at any time.</p>
      </>
    ),
    confirm: isDiscard ? "Discard them" : "Run it",
    isDangerous: isDiscard,
    reason: isDiscard ? "required" : "optional",
    command: (reason) => planVerbLine("run", plan.id, reason),
    run: (reason) => change(plan, "run", reason, "The plan runs.", reload),
  });
}

function askToPause(plan: Plan, reload: () => void): void {
  askFor({
    title: "Pause the plan",
    text: <p>What is on its way goes on; nothing more is sent until somebody resumes it.</p>,
    confirm: "Pause it",
    command: (reason) => planVerbLine("pause", plan.id, reason),
    run: (reason) => change(plan, "pause", reason, "The plan is paused.", reload),
  });
}

function askToCancel(plan: Plan, reload: () => void): void {
  askFor({
    title: "Cancel the plan",
    text: (
      <p>
        It ends for good, and cannot be run again. What was {plan.action === "discard" ? "discarded" : "sent"} stays so;
        the others stay as they are.
      </p>
    ),
    confirm: "Cancel the plan",
    isDangerous: true,
    command: (reason) => planVerbLine("cancel", plan.id, reason),
    run: (reason) => change(plan, "cancel", reason, "The plan is cancelled.", reload),
  });
}
