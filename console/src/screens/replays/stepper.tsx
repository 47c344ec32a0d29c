import { Hint } from "../../kit/hint.tsx";
import { Icon } from "../../kit/icons.tsx";
import type { Plan } from "../../kit/types.ts";
import { stepsOf } from "./plan-steps.ts";

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
