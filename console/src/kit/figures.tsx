import { useNow } from "./clock.ts";
import { agoText, countText, durationText, timeText } from "./format.ts";
import { Hint, type HintWord } from "./hint.tsx";
import { PlainText } from "./plain-text.tsx";

/** How long ago, with the exact time in the tooltip. */
export function Ago({ at }: { readonly at: string | null }) {
  const now = useNow();
  if (at === null) return <span class="faint">–</span>;
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={`${timeText(at)} (${at})`}>
      {Number.isNaN(time) ? at : agoText(time, now)}
    </time>
  );
}

export function Count({
  value,
  isEstimate = false,
}: {
  readonly value: number | string | null;
  readonly isEstimate?: boolean;
}) {
  if (value === null)
    return (
      <span class="faint" title="Unknown">
        –
      </span>
    );
  return (
    <span
      class="num"
      title={isEstimate ? "An estimate: an exact count would be too expensive for the database" : undefined}
    >
      {isEstimate && "≈ "}
      {countText(value)}
    </span>
  );
}

export function Span({ ms }: { readonly ms: number | null }) {
  return ms === null ? <span class="faint">–</span> : <span class="num">{durationText(ms)}</span>;
}

interface ProgressPart {
  readonly label: string;
  readonly count: number;
  readonly tone: "good" | "accent" | "bad" | "plain" | "warn";
}

/** A progress bar of several parts; the remainder up to `total` is still to be done. */
export function Progress({
  label,
  total,
  parts,
}: {
  readonly label: string;
  readonly total: number;
  readonly parts: readonly ProgressPart[];
}) {
  const sum = parts.reduce((all, { count }) => all + count, 0);
  const text = parts.map(({ label: name, count }) => `${countText(count)} ${name}`).join(", ");
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={Math.min(sum, total)}
      aria-valuetext={`${text} of ${countText(total)}`}
      title={text}
    >
      {parts.map(({ label: name, count, tone }) => (
        <span key={name} class={tone} style={{ width: `${total === 0 ? 0 : (100 * count) / total}%` }} />
      ))}
    </div>
  );
}

/** A breakdown with bars, largest first. */
export function Bars({
  label,
  counts,
  hrefOf,
}: {
  readonly label: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly hrefOf?: (name: string) => string;
}) {
  const rows = Object.entries(counts).sort(([, left], [, right]) => right - left);
  const most = rows[0]?.[1] ?? 1;
  return (
    <ul class="bars" aria-label={label}>
      {rows.map(([name, count]) => (
        <li key={name}>
          <span class="bar" style={{ width: `${(100 * count) / most}%` }} />
          <span class="name">
            {hrefOf === undefined ? (
              <PlainText text={name} />
            ) : (
              <a href={hrefOf(name)}>
                <PlainText text={name} />
              </a>
            )}
          </span>
          <span class="num">{countText(count)}</span>
        </li>
      ))}
    </ul>
  );
}

/** A key figure. */
export function Tile({
  label,
  value,
  unit,
  note,
  tone,
  href,
  hint,
}: {
  readonly label: string;
  readonly value: string;
  readonly unit?: string | undefined;
  readonly note?: string | undefined;
  readonly tone?: "bad" | "warn" | undefined;
  readonly href?: string | undefined;
  readonly hint?: HintWord | undefined;
}) {
  const inside = (
    <>
      <span class="label">{label}</span>
      <span class="value">
        {value}
        {unit !== undefined && <small>{unit}</small>}
      </span>
      <span class="note">{note ?? "\u00a0"}</span>
    </>
  );
  const look = `tile ${tone ?? ""}`;
  const tile =
    href === undefined ? (
      <div class={look}>{inside}</div>
    ) : (
      <a class={look} href={href}>
        {inside}
      </a>
    );
  return hint === undefined ? (
    tile
  ) : (
    <div class="hinted">
      {tile}
      <Hint word={hint} />
    </div>
  );
}

/** When something is due. "now" once the time has passed: it happens as soon as the relay has capacity. */
export function Due({ at }: { readonly at: string | null }) {
  const now = useNow();
  if (at === null) return <span class="faint">–</span>;
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={timeText(at)}>
      {time <= now ? "now" : agoText(time, now)}
    </time>
  );
}
