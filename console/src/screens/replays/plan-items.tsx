import { StateBadge } from "../../kit/badge.tsx";
import { Answer, Empty } from "../../kit/error-box.tsx";
import { Ago } from "../../kit/figures.tsx";
import { Card, Tabs } from "../../kit/page.tsx";
import { placeHash, type Query, segment } from "../../kit/place.ts";
import { PlainText, ShortId } from "../../kit/plain-text.tsx";
import { usePlace } from "../../kit/router.ts";
import { type Column, Pager, Table } from "../../kit/table.tsx";
import type { Plan, PlanItems } from "../../kit/types.ts";
import { useApi } from "../../kit/use-api.ts";
import { eventHref } from "../links.ts";

type Item = PlanItems["items"][number];

const STATES = ["waiting", "sent", "done", "failed", "left"] as const;
const LOOK_AGAIN_MS = 2_000;

const COLUMNS: readonly Column<Item>[] = [
  { name: "Type", cell: ({ type }) => <PlainText text={type} /> },
  { name: "State", cell: ({ state }) => <StateBadge state={state} /> },
  {
    name: "Key",
    cell: ({ key }) =>
      key === null ? (
        <span class="faint">none</span>
      ) : (
        <span class="mono cut-end">
          <PlainText text={key} />
        </span>
      ),
  },
  {
    name: "Id",
    cell: ({ id }) => <ShortId id={id} />,
  },
  { name: "Source", isExtra: true, cell: ({ source }) => <span class="soft">{source}</span> },
  { name: "Changed", cell: ({ changedAt }) => <Ago at={changedAt} /> },
  {
    name: "Why",
    isWide: true,
    cell: ({ reason }) => <span class="cut">{reason !== null && <PlainText text={reason} charsMax={300} />}</span>,
  },
];

/** The events of the plan, in the order in which it processes them. */
export function PlanItemsCard({ plan, query }: { readonly plan: Plan; readonly query: Query }) {
  const { path } = usePlace();
  const state = STATES.find((it) => it === query.state);
  const asked = useApi<PlanItems>(
    `/replays/${segment(plan.id)}/items`,
    { state, cursor: query.cursor, limit: 50 },
    { everyMs: plan.state === "running" || plan.progress.sent > 0 ? LOOK_AGAIN_MS : 0 },
  );
  const tabs = [
    { label: "All", href: placeHash(path), isOpen: state === undefined, count: plan.count },
    ...STATES.filter((it) => plan.progress[it] > 0 || it === state).map((it) => ({
      label: it,
      href: placeHash(path, { state: it }),
      isOpen: it === state,
      count: plan.progress[it],
    })),
  ];
  return (
    <Card isFlush title="Events of the plan" note="in processing order">
      <div class="tabs-inside">
        <Tabs label="Events by state" tabs={tabs} />
      </div>
      <Answer asked={asked}>
        {({ items, cursor }) => (
          <>
            {items.length === 0 ? (
              <Empty title={plan.count === 0 ? "The filter matched no events" : "No events in this state"} icon="dot" />
            ) : (
              <Table
                label="Events of the plan"
                columns={COLUMNS}
                rows={items}
                keyOf={({ seq }) => seq}
                hrefOf={(item) => eventHref(item)}
              />
            )}
            <Pager cursor={query.cursor} next={cursor} />
          </>
        )}
      </Answer>
    </Card>
  );
}
