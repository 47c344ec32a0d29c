import { useState } from "preact/hooks";
import { Badge } from "../../kit/badge.tsx";
import { Sparkline } from "../../kit/chart.tsx";
import { Ago } from "../../kit/figures.tsx";
import { withField } from "../../kit/filter/filter-text.ts";
import { countText, plural } from "../../kit/format.ts";
import { Card } from "../../kit/page.tsx";
import { placeHash } from "../../kit/place.ts";
import { Marked, PlainText } from "../../kit/plain-text.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import type { LetterGroup } from "../../kit/types.ts";
import { cutText, visibleText } from "../../kit/visible-text.ts";
import { PlanButtons } from "./letters.tsx";

const NAMES_MAX = 2;
const NAME_CHARS = 60;

function groupHref(q: string, group: string): string {
  return placeHash("/dead-letters", { q, group });
}

const COLUMNS: readonly Column<LetterGroup>[] = [
  {
    name: "Error",
    isWide: true,
    cell: ({ error, example }) => (
      <span class="stack">
        <span class="cut" title={visibleText(error, 1_000)}>
          <Marked text={cutText(error, 300)} />
        </span>
        {example !== error && (
          <span class="cut two faint" title={visibleText(example, 1_000)}>
            <Marked text={cutText(example, 300)} />
          </span>
        )}
      </span>
    ),
  },
  { name: "Status", isFigure: true, cell: ({ status }) => status ?? "" },
  { name: "Destination", cell: ({ destinations }) => <Some names={destinations} /> },
  { name: "Events", isFigure: true, cell: ({ count }) => <strong class="num">{countText(count)}</strong> },
  {
    name: "Over time",
    cell: (group) => (
      <Sparkline
        isBars
        values={group.histogram}
        label={`Over time, from first to last: ${group.histogram.join(", ")}`}
      />
    ),
  },
  { name: "Keys", isFigure: true, cell: keysText },
  { name: "Types", cell: ({ types }) => <Some names={types} /> },
  { name: "Last", cell: ({ lastFailedAt }) => <Ago at={lastFailedAt} /> },
];

/** Only the newest dead letters of a large group are sampled. */
export function keysText({ count, keys, sampled }: LetterGroup): string {
  return `${countText(keys)}${sampled < count ? "+" : ""}`;
}

interface GroupsProps {
  readonly groups: readonly LetterGroup[];
  readonly q: string;
  /** Number of events in all groups. */
  readonly total: number;
}

/** One row per normalized error. Actions apply to the selected groups, or to all if none is selected. */
export function Groups({ groups, q, total }: GroupsProps) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const meant = groups.filter(({ group }) => chosen.has(group));
  const isAll = meant.length === 0;
  const filter = isAll ? q : withField(q, "group", meant.map(({ group }) => group).join());
  return (
    <Card
      isFlush
      title={isAll ? "Errors" : `${plural(meant.length, "error")} chosen`}
      note={`${plural(total, "event")} by ${plural(groups.length, "error")}`}
      actions={<PlanButtons filter={filter} ids={[]} total={isAll ? total : countOf(meant)} />}
    >
      <Table
        label="Errors, most frequent first"
        columns={COLUMNS}
        rows={groups}
        keyOf={({ group }) => group}
        hrefOf={({ group }) => groupHref(q, group)}
        chosen={chosen}
        onChoose={setChosen}
      />
    </Card>
  );
}

export function countOf(groups: readonly LetterGroup[]): number {
  return groups.reduce((sum, { count }) => sum + count, 0);
}

export function Some({ names }: { readonly names: readonly string[] }) {
  return (
    <span class="row tight" title={names.map((name) => visibleText(name, NAME_CHARS)).join(", ")}>
      {names.slice(0, NAMES_MAX).map((name) => (
        <Badge key={name}>
          <PlainText text={name} charsMax={NAME_CHARS} />
        </Badge>
      ))}
      {names.length > NAMES_MAX && <span class="faint">+{names.length - NAMES_MAX}</span>}
    </span>
  );
}
