import { Badge } from "../../kit/badge.tsx";
import { countText } from "../../kit/format.ts";
import { Card } from "../../kit/page.tsx";
import { Marked, PlainText } from "../../kit/plain-text.tsx";
import { type Column, Table } from "../../kit/table.tsx";
import type { Plan, PlanStratum } from "../../kit/types.ts";
import { cutText, visibleText } from "../../kit/visible-text.ts";

const COLUMNS: readonly Column<PlanStratum>[] = [
  { name: "Destination", cell: ({ destination }) => destination ?? <span class="faint">all smaller ones</span> },
  { name: "Type", cell: ({ type }) => type !== null && <PlainText text={type} /> },
  {
    name: "Error",
    isWide: true,
    cell: ({ error, failure }) => {
      const text = failure ?? error;
      return (
        <span class="cut" title={text === null ? undefined : visibleText(text, 1_000)}>
          {text !== null && <Marked text={cutText(text, 300)} />}
        </span>
      );
    },
  },
  { name: "Events", isFigure: true, cell: ({ count }) => <span class="num">{countText(count)}</span> },
  { name: "Delivered", isFigure: true, cell: ({ done }) => <span class="num">{countText(done)}</span> },
  { name: "Canary", cell: canary },
];

function canary({ failure, passed, sent }: PlanStratum) {
  if (failure !== null) return <Badge tone="bad">failed</Badge>;
  if (passed > 0) return <Badge tone="good">arrived</Badge>;
  return sent > 0 ? <Badge tone="accent">in flight</Badge> : <Badge>not sent yet</Badge>;
}

/** The strata of the canary: one event of each row goes before all others. */
export function PlanStrata({ plan }: { readonly plan: Plan }) {
  if (plan.action === "discard") return null;
  return (
    <Card isFlush title="By destination, error and type" note="one event of each goes first, then ten of each">
      <Table
        label="Strata of the canary"
        columns={COLUMNS}
        rows={plan.strata}
        keyOf={({ destination, group, type }) => JSON.stringify([destination, group, type])}
      />
    </Card>
  );
}
