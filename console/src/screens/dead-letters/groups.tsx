import { Badge } from "../../kit/badge.tsx";
import { Sparkline } from "../../kit/chart.tsx";
import { Ago } from "../../kit/figures.tsx";
import { countText } from "../../kit/format.ts";
import { placeHash } from "../../kit/place.ts";
import { type Column, Table } from "../../kit/table.tsx";
import type { LetterGroup } from "../../kit/types.ts";

const NAMES_MAX = 2;

function groupHref(q: string, group: string): string {
  return placeHash("/dead-letters", { q, group });
}

const COLUMNS: readonly Column<LetterGroup>[] = [
  {
    name: "Error",
    isWide: true,
    cell: ({ error }) => (
      <span class="cut" title={error}>
        {error}
      </span>
    ),
  },
  { name: "Events", isFigure: true, cell: ({ count }) => <strong class="num">{countText(count)}</strong> },
  {
    name: "When they died",
    cell: (group) => (
      <Sparkline isBars values={group.histogram} label={`From the first to the last: ${group.histogram.join(", ")}`} />
    ),
  },
  { name: "Keys", isFigure: true, cell: keysText },
  { name: "Types", cell: ({ types }) => <Some names={types} /> },
  { name: "Last", cell: ({ lastFailedAt }) => <Ago at={lastFailedAt} /> },
];

/** Of a large group only the newest are looked at. */
export function keysText({ count, keys, sampled }: LetterGroup): string {
  return `${countText(keys)}${sampled < count ? "+" : ""}`;
}

/** One line for each error, without what is special to one event. */
export function Groups({
  groups,
  q,
  isDim,
}: {
  readonly groups: readonly LetterGroup[];
  readonly q: string;
  readonly isDim: boolean;
}) {
  return (
    <Table
      label="Errors, the most frequent first"
      columns={COLUMNS}
      rows={groups}
      keyOf={({ group }) => group}
      hrefOf={({ group }) => groupHref(q, group)}
      isDim={isDim}
    />
  );
}

export function Some({ names }: { readonly names: readonly string[] }) {
  return (
    <span class="row tight" title={names.join(", ")}>
      {names.slice(0, NAMES_MAX).map((name) => (
        <Badge key={name}>{name}</Badge>
      ))}
      {names.length > NAMES_MAX && <span class="faint">+{names.length - NAMES_MAX}</span>}
    </span>
  );
}
