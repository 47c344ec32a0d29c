import { apiPost } from "../../kit/api.ts";
import { askFor } from "../../kit/dialog.tsx";
import type { Plan } from "../../kit/types.ts";
import { type PlanWish, planLine } from "../cli-lines.ts";
import { jsonProblem } from "../event/line-change.ts";
import { planHref } from "../links.ts";

/** A rate that is not a number is sent as it is: the service rejects it with an error. */
export function planBody(wish: PlanWish, reason: string, rate: string, patch = ""): object {
  const { all, ids, pipeline, q } = wish;
  return {
    action: wish.action,
    subject: wish.subject,
    ...(q.trim() === "" ? {} : { q }),
    ...(ids === undefined ? {} : { ids }),
    ...(all ? { all } : {}),
    ...(pipeline ? { pipeline } : {}),
    ...(patch === "" ? {} : { patch }),
    ...(rate === "" ? {} : { ratePerSecond: Number.isFinite(Number(rate)) ? Number(rate) : rate }),
    ...(reason === "" ? {} : { reason }),
  };
}

const PATCH = {
  label: "Patch, as JSON",
  help: "A JSON merge patch (RFC 7396) for every payload: fields are set, objects are merged, null removes a field. The plan shows examples.",
  initial: '{\n  "": ""\n}',
  problemOf: (text: string) => {
    const problem = jsonProblem(text);
    if (problem !== null) return `Invalid JSON: ${problem}`;
    return /^\s*\{\s*"/.test(text) && text !== PATCH.initial ? null : "Enter at least one field.";
  },
};

/** Creates a plan and opens it. Nothing changes until the operator runs it there. */
export function askForPlan(wish: PlanWish, what: string): void {
  const isDiscard = wish.action === "discard";
  const isPatch = wish.isPatch === true;
  askFor({
    title: isDiscard
      ? `Plan to discard ${what}`
      : isPatch
        ? `Plan to patch and replay ${what}`
        : `Plan to replay ${what}`,
    text: (
      <>
        <p>
          This creates a plan: a frozen list of these events with counts and warnings. Nothing is{" "}
          {isDiscard ? "discarded" : "sent"} until you review the plan and run it.
        </p>
        {!isDiscard && (
          <p>
            The plan then sends them in order: one event of each destination, error and type, then ten of each, then the
            rest. It stops if the same error returns.
          </p>
        )}
      </>
    ),
    confirm: "Create the plan",
    reason: isDiscard || isPatch ? "required" : "optional",
    ...(isPatch ? { content: PATCH } : {}),
    ...(isDiscard
      ? {}
      : {
          amount: {
            label: "Maximum events per second (optional)",
            help: "Empty for no limit.",
            initial: "",
          },
        }),
    command: (reason, rate, patch) => planLine(wish, reason, rate, patch.trim()),
    run: async (reason, rate, patch) => {
      const plan = await apiPost<Plan>("/replays", planBody(wish, reason, rate, patch.trim()));
      location.hash = planHref(plan.id);
    },
  });
}
