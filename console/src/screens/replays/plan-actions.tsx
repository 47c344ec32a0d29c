import { ActionButton, RoleNote } from "../../kit/action-button.tsx";
import { apiPost } from "../../kit/api.ts";
import { CliButton } from "../../kit/button.tsx";
import { askFor } from "../../kit/dialog.tsx";
import { plural } from "../../kit/format.ts";
import { segment } from "../../kit/place.ts";
import { toast } from "../../kit/toast.tsx";
import type { Plan } from "../../kit/types.ts";
import { visibleText } from "../../kit/visible-text.ts";
import { planVerbLine } from "../cli-lines.ts";

type Verb = "run" | "pause" | "cancel";

async function change(
  plan: Plan,
  verb: Verb,
  reason: string,
  done: string,
  reload: () => void,
  more = {},
): Promise<void> {
  await apiPost<Plan>(`/replays/${segment(plan.id)}/${verb}`, { ...more, ...(reason === "" ? {} : { reason }) });
  toast(done);
  reload();
}

/** Some of its strata failed, and others can still run. */
function canSkip({ state, strata }: Plan): boolean {
  const failed = strata.filter(({ failure }) => failure !== null).length;
  return state === "stopped" && failed > 0 && failed < strata.length;
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
      {canSkip(plan) && (
        <ActionButton icon="play" onClick={() => askToSkip(plan, reload)}>
          Continue without the failed ones
        </ActionButton>
      )}
      {!isOver && state !== "running" && (
        <ActionButton
          icon="play"
          kind={plan.action === "discard" ? "danger" : "primary"}
          whyNot={count === 0 ? "The plan has no events." : null}
          onClick={() => askToRun(plan, reload)}
        >
          {state === "planned" ? "Run the plan" : state === "paused" ? "Resume" : "Continue"}
        </ActionButton>
      )}
    </>
  );
}

function askToRun(plan: Plan, reload: () => void): void {
  const events = plural(plan.progress.waiting, "event");
  const isDiscard = plan.action === "discard";
  askFor({
    title: plan.state === "planned" ? "Run the plan" : "Continue the plan",
    text: isDiscard ? (
      <p>
        {events} {plan.progress.waiting === 1 ? "is" : "are"} discarded permanently: never sent, never replayed.
      </p>
    ) : (
      <>
        <p>
          {events} {plan.progress.waiting === 1 ? "is" : "are"} sent, in order within each key: one of each destination,
          error and type first, then ten of each, then the rest. The plan stops if the same error returns.
        </p>
        <p>Events that changed since the plan was created are skipped. You can pause at any time.</p>
      </>
    ),
    confirm: isDiscard ? "Discard them" : "Run it",
    isDangerous: isDiscard,
    reason: isDiscard ? "required" : "optional",
    command: (reason) => planVerbLine("run", plan.id, reason),
    run: (reason) => change(plan, "run", reason, "The plan is running.", reload),
  });
}

function askToSkip(plan: Plan, reload: () => void): void {
  const failed = plan.strata.filter(({ failure }) => failure !== null);
  askFor({
    title: "Continue without the failed ones",
    text: (
      <>
        <p>These stay dead letters, and the plan continues with the others:</p>
        <ul>
          {failed.map(({ destination, group, type }) => (
            <li key={JSON.stringify([destination, group, type])}>
              {destination === null
                ? "all smaller ones"
                : `${visibleText(type ?? "", 120)} to ${destination}, error ${group}`}
            </li>
          ))}
        </ul>
      </>
    ),
    confirm: "Continue",
    command: (reason) => `${planVerbLine("run", plan.id, reason)} --skip-failed`,
    run: (reason) => change(plan, "run", reason, "The plan is running.", reload, { skipFailed: true }),
  });
}

function askToPause(plan: Plan, reload: () => void): void {
  askFor({
    title: "Pause the plan",
    text: <p>Events in flight are finished; no more are sent until you resume the plan.</p>,
    confirm: "Pause",
    command: (reason) => planVerbLine("pause", plan.id, reason),
    run: (reason) => change(plan, "pause", reason, "The plan is paused.", reload),
  });
}

function askToCancel(plan: Plan, reload: () => void): void {
  askFor({
    title: "Cancel the plan",
    text: (
      <p>
        The plan ends and cannot be run again. Events that were {plan.action === "discard" ? "discarded" : "sent"} stay
        so; the others are not changed.
      </p>
    ),
    confirm: "Cancel the plan",
    isDangerous: true,
    command: (reason) => planVerbLine("cancel", plan.id, reason),
    run: (reason) => change(plan, "cancel", reason, "The plan is cancelled.", reload),
  });
}
