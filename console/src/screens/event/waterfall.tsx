import { fineText } from "./precise-time.ts";
import { type Phase, phasesOf } from "./waterfall-layout.ts";

type Timed = Parameters<typeof phasesOf>[0];

/** The timing of one attempt: commit, claim, send, answer. */
export function Waterfall({ attempt, label }: { readonly attempt: Timed; readonly label: string }) {
  const phases = phasesOf(attempt);
  if (phases.length === 0) return null;
  const text = phases.map((phase) => `${phase.label} ${fineText(phase.ms)}`).join(", ");
  return (
    <div class="waterfall">
      <svg width="100%" height="14" role="img" aria-label={`${label}: ${text}`}>
        {phases.map((phase) => (
          <Bar key={phase.name} phase={phase} />
        ))}
      </svg>
      <ul>
        {phases.map(({ name, label: what, ms, isCut }) => (
          <li key={name} class={name}>
            <i aria-hidden="true" />
            {what} <b class="num">{fineText(ms)}</b>
            {isCut && <span class="faint"> (drawn shorter)</span>}
          </li>
        ))}
      </ul>
    </div>
  );
}

const percent = (share: number) => `${(100 * share).toFixed(2)}%`;

function Bar({ phase: { name, x, width, isCut, label, ms } }: { readonly phase: Phase }) {
  return (
    <g class={name}>
      <title>{`${label}: ${fineText(ms)}`}</title>
      <rect
        x={percent(x)}
        y={name === "wait" ? 5 : 1}
        width={percent(width)}
        height={name === "wait" ? 4 : 12}
        rx="1.5"
      />
      {isCut && (
        <svg x={percent(x + width / 2)} y="0" width="12" height="14" overflow="visible" aria-hidden="true">
          <path class="cut-mark" d="M-3 14 1 0M2 14 6 0" />
        </svg>
      )}
    </g>
  );
}
