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
    hint: "The circuit opens; no attempts are counted",
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
    hint: "Each batch takes half a second longer",
    isOn: ({ destination }) => destination.faults.slow,
  },
  {
    fault: "database",
    label: "Database stopped",
    hint: "No writes, no settling",
    isOn: ({ isDatabaseStopped }) => isDatabaseStopped,
  },
  {
    fault: "second",
    label: "Second relay",
    hint: "The relays share the lanes",
    isOn: ({ relays }) => relays[1] !== undefined && relays[1].state !== "stopped",
  },
  { fault: "traffic", label: "Traffic", hint: "The shop writes orders", isOn: ({ traffic }) => traffic.isOn },
];

const ACTS = [
  ["poison", "Poison event", "Writes an event that the receiver rejects, and two more events of its key"],
  ["kill", "Kill the relay", "kill -9; a new process starts after 3 s"],
  ["freeze", "Freeze the database", "The database stops answering for 5 s"],
  ["burst", "Burst", "Writes 10,000 events at once"],
  ["fix", "Fix", "The destination accepts everything again, including poison events"],
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
            kind={fault === "fix" ? "primary" : "plain"}
            title={hint}
            onClick={() => void ask({ fault })}
          >
            {label}
          </Button>
        ))}
      </div>
      <RecentEvents state={state} />
    </div>
  );
}

const SHOWN_MAX = 5;

function RecentEvents({ state: { journal } }: { readonly state: DemoState }) {
  return (
    <ul class="demo-journal" aria-label="Recent events">
      {journal.slice(0, SHOWN_MAX).map(({ atMs, text, tone }) => (
        <li key={`${atMs} ${text}`} class={tone}>
          <time dateTime={new Date(atMs).toISOString()}>{clockText(atMs)}</time> {text}
        </li>
      ))}
    </ul>
  );
}
