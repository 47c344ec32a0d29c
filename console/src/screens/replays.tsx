import { ActionButton } from "../kit/action-button.tsx";
import { StateBadge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago } from "../kit/figures.tsx";
import { plural } from "../kit/format.ts";
import { Card, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { RoleNote } from "../kit/role-note.tsx";
import { changeQuery } from "../kit/router.ts";
import { type Column, Pager, Table } from "../kit/table.tsx";
import type { Plan, PlanPage } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { plansLine } from "./cli-lines.ts";
import { planHref } from "./links.ts";
import { DeliveredForm } from "./replays/delivered-form.tsx";
import { PlanBar } from "./replays/plan-progress.tsx";
import { planTitle } from "./replays/plan-steps.ts";
import type { ScreenProps } from "./screens.tsx";

const LOOK_AGAIN_MS = 2_000;

const COLUMNS: readonly Column<Plan>[] = [
  { name: "Plan", cell: (plan) => planTitle(plan, plural(plan.count, "event")) },
  { name: "State", cell: ({ state }) => <StateBadge state={state} /> },
  { name: "Progress", cell: (plan) => <PlanBar plan={plan} hasFigure /> },
  { name: "By", cell: ({ createdBy }) => createdBy },
  { name: "Made", cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    name: "Which, and why",
    isWide: true,
    cell: ({ filter, reason, stopReason }) => (
      <span class="cut" title={[filter, reason, stopReason].filter(Boolean).join("\n")}>
        <code>{filter === "" ? "all" : filter}</code>{" "}
        {stopReason === null ? <span class="soft">{reason}</span> : <span class="bad">{stopReason}</span>}
      </span>
    ),
  },
];

export function ReplaysScreen({ query }: ScreenProps) {
  const isForm = query.new !== undefined;
  const cursor = isForm ? undefined : query.cursor;
  const asked = useApi<PlanPage>("/replays", { cursor, limit: 50 }, { everyMs: LOOK_AGAIN_MS });
  return (
    <Page
      title="Replays"
      lead="Plans of what is to be sent again or given up: frozen when they are made, looked at, then run."
      actions={
        <>
          <RoleNote />
          <CliButton command={plansLine()} />
          {!isForm && (
            <ActionButton icon="replays" onClick={() => changeQuery({ new: "delivered", cursor: null })}>
              Replay delivered events
            </ActionButton>
          )}
        </>
      }
    >
      {isForm && <DeliveredForm query={query} />}
      <Answer asked={asked} command={plansLine()}>
        {({ plans, cursor: next }) =>
          plans.length === 0 ? (
            <Empty title="No plans yet" icon="replays">
              A replay begins where the events are: choose some <a href={placeHash("/dead-letters")}>dead letters</a>,
              or replay <a href={placeHash("/replays", { new: "delivered" })}>delivered events</a> of a time.
            </Empty>
          ) : (
            <>
              <Card isFlush>
                <Table
                  label="Replay plans"
                  columns={COLUMNS}
                  rows={plans}
                  keyOf={({ id }) => id}
                  hrefOf={({ id }) => planHref(id)}
                />
              </Card>
              <Pager cursor={cursor} next={next} />
            </>
          )
        }
      </Answer>
    </Page>
  );
}
