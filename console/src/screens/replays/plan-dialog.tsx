import { apiPost } from "../../kit/api.ts";
import { askFor } from "../../kit/dialog.tsx";
import type { Plan } from "../../kit/types.ts";
import { type PlanWish, planLine } from "../cli-lines.ts";
import { planHref } from "../links.ts";

/** A rate that is no number is left to the service to complain about. */
export function planBody(wish: PlanWish, reason: string, rate: string): object {
  const { all, ids, pipeline, q } = wish;
  return {
    action: wish.action,
    subject: wish.subject,
    ...(q.trim() === "" ? {} : { q }),
    ...(ids === undefined ? {} : { ids }),
    ...(all ? { all } : {}),
    ...(pipeline ? { pipeline } : {}),
    ...(rate === "" ? {} : { ratePerSecond: Number.isFinite(Number(rate)) ? Number(rate) : rate }),
    ...(reason === "" ? {} : { reason }),
  };
}

/** Writes a plan and leads to it. Nothing is done before it is run there. */
export function askForPlan(wish: PlanWish, what: string): void {
  const isDiscard = wish.action === "discard";
  askFor({
    title: isDiscard ? `Plan to discard ${what}` : `Plan to replay ${what}`,
    text: (
      <>
        <p>
          First a plan is written: which events exactly, each as it is now, how many of which kind, and what to beware
          of. Nothing is {isDiscard ? "discarded" : "sent"} until you have looked at it and run it.
        </p>
        {!isDiscard && (
          <p>It then goes out in order: one event, then ten, then the rest, and stops when the same error returns.</p>
        )}
      </>
    ),
    confirm: "Write the plan",
    reason: isDiscard ? "required" : "optional",
    ...(isDiscard
      ? {}
      : {
          amount: {
            label: "Events a second, at most (optional)",
            help: "Empty: as fast as the pipeline goes.",
            initial: "",
          },
        }),
    command: (reason, rate) => planLine(wish, reason, rate),
    run: async (reason, rate) => {
      const plan = await apiPost<Plan>("/replays", planBody(wish, reason, rate));
      location.hash = planHref(plan.id);
    },
  });
}
