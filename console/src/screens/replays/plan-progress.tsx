import { useNow } from "../../kit/clock.ts";
import { Progress } from "../../kit/figures.tsx";
import { countText, durationText } from "../../kit/format.ts";
import { Hint } from "../../kit/hint.tsx";
import { Icon } from "../../kit/icons.tsx";
import type { Plan } from "../../kit/types.ts";
import { leftMs, stepsOf } from "./plan-steps.ts";

interface PlanBarProps {
  readonly plan: Plan;
  readonly hasFigure?: boolean;
}

/** A narrow progress bar for lists. */
export function PlanBar({ plan: { count, progress }, hasFigure = false }: PlanBarProps) {
  const { done, failed, left, sent } = progress;
  const bar = (
    <Progress
      label="Progress"
      total={count}
      parts={[
        { label: "done", count: done, tone: "good" },
        { label: "in flight", count: sent, tone: "accent" },
        { label: "failed again", count: failed, tone: "bad" },
        { label: "skipped", count: left, tone: "warn" },
      ]}
    />
  );
  if (!hasFigure) return bar;
  return (
    <span class="plan-bar">
      {bar}{" "}
      <span class="num faint">{count === 0 ? "–" : `${Math.floor((100 * (done + failed + left)) / count)} %`}</span>
    </span>
  );
}

/** The progress bar with its counts and the remaining time. */
export function PlanProgress({ plan }: { readonly plan: Plan }) {
  const { action, progress } = plan;
  const rest = leftMs(plan, useNow());
  const figures = [
    [action === "discard" ? "discarded" : "delivered", progress.done, "good"],
    ["in flight", progress.sent, "accent"],
    ["failed again", progress.failed, "bad"],
    ["skipped", progress.left, "warn"],
    ["waiting", progress.waiting, "plain"],
  ] as const;
  return (
    <div class="plan-progress">
      <PlanBar plan={plan} />
      <ul class="row">
        {figures
          .filter(([label, count]) => count > 0 || label === figures[0][0])
          .map(([label, count, tone]) => (
            <li key={label} class={`legend ${tone}`}>
              <i aria-hidden="true" />
              <b class="num">{countText(count)}</b> {label}
            </li>
          ))}
        {rest !== null && <li class="faint">about {durationText(rest)} to go</li>}
      </ul>
    </div>
  );
}

const ICONS = { past: "check", "to come": "dot", failed: "cross" } as const;

function iconNow({ state }: Plan): "clock" | "pause" | "play" {
  if (state === "planned") return "clock";
  return state === "paused" ? "pause" : "play";
}

export function Stepper({ plan }: { readonly plan: Plan }) {
  return (
    <div class="stepper-row">
      <ol class="stepper" aria-label="Stages of the plan">
        {stepsOf(plan).map(({ label, state }) => (
          <li key={label} class={state.replace(" ", "-")} aria-current={state === "now" ? "step" : undefined}>
            <span class="dot">
              <Icon name={state === "now" ? iconNow(plan) : ICONS[state]} />
            </span>
            {label}
            <span class="unseen">, {state}</span>
          </li>
        ))}
      </ol>
      <Hint word="stages" />
    </div>
  );
}
