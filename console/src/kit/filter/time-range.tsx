import { changeQuery } from "../router.ts";
import { useStore } from "../store.ts";
import { clockIn, setTimeZone, timeIn, timeZone, timeZones } from "../time-zone.ts";
import { fieldValue, withField } from "./filter-text.ts";

const SPANS: readonly (readonly [since: string, text: string])[] = [
  ["15m", "15 minutes"],
  ["1h", "hour"],
  ["1d", "24 hours"],
  ["7d", "7 days"],
];

/** Sets `since:` and `until:` of the filter, so that the range is part of the address. */
export function TimeRange({ q }: { readonly q: string }) {
  const set = (from: string | null, to: string | null) => {
    const bare = withField(q, "age", null);
    changeQuery({ q: withField(withField(bare, "since", from), "until", to), cursor: null });
  };
  return <TimeMenu since={fieldValue(q, "since")} until={fieldValue(q, "until")} set={set} />;
}

interface TimeMenuProps {
  readonly since: string | null;
  readonly until: string | null;
  set(since: string | null, until: string | null): void;
}

/** Selects a time range and the time zone of all displayed times. */
export function TimeMenu({ since, until, set }: TimeMenuProps) {
  const zone = useStore(timeZone);
  return (
    <details class="menu">
      <summary class="button plain">{rangeText(since, until, zone)}</summary>
      <div class="menu-panel">
        <div class="row">
          {SPANS.map(([span, text]) => (
            <button key={span} type="button" class="button quiet" onClick={() => set(span, null)}>
              Last {text}
            </button>
          ))}
          <button type="button" class="button quiet" onClick={() => set(null, null)}>
            All
          </button>
        </div>
        <Bound label="From" value={since} zone={zone} onTime={(at) => set(at, until)} />
        <Bound label="Until" value={until} zone={zone} onTime={(at) => set(since, at)} />
        <label class="field">
          <span>Time zone</span>
          <select value={zone} onChange={(event) => setTimeZone(event.currentTarget.value)}>
            {timeZones().map(([it, text]) => (
              <option key={it} value={it}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <p class="note">The zone holds for every time on every screen, in this browser.</p>
      </div>
    </details>
  );
}

interface BoundProps {
  readonly label: string;
  readonly value: string | null;
  readonly zone: string;
  onTime(at: string | null): void;
}

function Bound({ label, value, zone, onTime }: BoundProps) {
  const at = value === null ? null : absolute(value);
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="datetime-local"
        value={at === null ? "" : clockIn(zone, at).slice(0, 16)}
        onChange={(event) => onTime(timeIn(zone, event.currentTarget.value)?.toISOString() ?? null)}
      />
    </label>
  );
}

/** Parses a date or time of the filter, in UTC unless it has an offset; null for a relative time. */
function absolute(text: string): Date | null {
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return null;
  const at = new Date(/T.*(Z|[+-]\d\d:\d\d)$/.test(text) || !text.includes("T") ? text : `${text}Z`);
  return Number.isNaN(at.getTime()) ? null : at;
}

function rangeText(since: string | null, until: string | null, zone: string): string {
  const text = (value: string) => {
    const at = absolute(value);
    return at === null ? `${value} ago` : clockIn(zone, at).replace("T", " ").slice(0, 16);
  };
  if (since === null && until === null) return "Any time";
  if (until === null) return `Since ${text(since ?? "")}`;
  return since === null ? `Until ${text(until)}` : `${text(since)} to ${text(until)}`;
}
