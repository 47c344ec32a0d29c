import { Button } from "../kit/button.tsx";
import { clockText } from "../kit/format.ts";
import { ask, type DemoState } from "./demo-state.ts";

interface Switch {
  readonly fault: string;
  readonly label: string;
  readonly hint: string;
  isOn(state: DemoState): boolean;
}

const SWITCHES: readonly Switch[] = [
  {
    fault: "down",
    label: "Destination down",
    hint: "The circuit opens; no attempt is spent",
    isOn: ({ destination }) => destination.faults.down,
  },
  {
    fault: "flaky",
    label: "Destination flaky",
    hint: "Every tenth message fails",
    isOn: ({ destination }) => destination.faults.flaky,
  },
  {
    fault: "slow",
    label: "Destination slow",
    hint: "Half a second more for each batch",
    isOn: ({ destination }) => destination.faults.slow,
  },
  {
    fault: "database",
    label: "Database stopped",
    hint: "Nobody can write or settle",
    isOn: ({ isDatabaseStopped }) => isDatabaseStopped,
  },
  {
    fault: "second",
    label: "Second relay",
    hint: "The lanes are shared out",
    isOn: ({ relays }) => relays[1] !== undefined && relays[1].state !== "stopped",
  },
  { fault: "traffic", label: "Traffic", hint: "Orders come in", isOn: ({ traffic }) => traffic.isOn },
];

const ACTS = [
  ["poison", "Poison event", "One event that its receiver refuses, and two more of its key"],
  ["kill", "Kill the relay", "A real kill -9; a new one starts after 3 s"],
  ["freeze", "Freeze the database", "It is there and answers nobody, for 5 s"],
  ["burst", "Burst", "10,000 events at once"],
  ["mend", "Mend", "The destination takes everything again, poison too"],
] as const;

export function Faults({ state }: { readonly state: DemoState }) {
  return (
    <div class="demo-faults">
      <div class="demo-switches">
        {SWITCHES.map(({ fault, hint, isOn, label }) => (
          <button
            key={fault}
            type="button"
            role="switch"
            class="demo-switch"
            data-fault={fault}
            aria-checked={isOn(state)}
            onClick={() => void ask({ fault, on: !isOn(state) })}
          >
            <i aria-hidden="true" />
            <span>
              {label}
              <small>{hint}</small>
            </span>
          </button>
        ))}
      </div>
      <div class="demo-acts">
        {ACTS.map(([fault, label, hint]) => (
          <Button
            key={fault}
            kind={fault === "mend" ? "primary" : "plain"}
            title={hint}
            onClick={() => void ask({ fault })}
          >
            {label}
          </Button>
        ))}
      </div>
      <Happenings state={state} />
    </div>
  );
}

const SHOWN_MAX = 5;

function Happenings({ state: { journal } }: { readonly state: DemoState }) {
  return (
    <ul class="demo-journal" aria-label="What happened">
      {journal.slice(0, SHOWN_MAX).map(({ atMs, text, tone }) => (
        <li key={`${atMs} ${text}`} class={tone}>
          <time dateTime={new Date(atMs).toISOString()}>{clockText(atMs)}</time> {text}
        </li>
      ))}
    </ul>
  );
}
