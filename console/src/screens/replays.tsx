import { useState } from "preact/hooks";
import { ActionButton, RoleNote } from "../kit/action-button.tsx";
import { StateBadge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { SearchField, SelectField } from "../kit/fields.tsx";
import { Ago } from "../kit/figures.tsx";
import { plural } from "../kit/format.ts";
import { Card, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { Marked, PlainText } from "../kit/plain-text.tsx";
import { changeQuery } from "../kit/router.ts";
import { type Column, Pager, Table } from "../kit/table.tsx";
import type { Plan, PlanPage } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import { cutText, visibleText } from "../kit/visible-text.ts";
import { plansLine } from "./cli-lines.ts";
import { planHref } from "./links.ts";
import { DeliveredForm } from "./replays/delivered-form.tsx";
import { PlanBulk } from "./replays/plan-bulk.tsx";
import { PlanBar } from "./replays/plan-progress.tsx";
import { planTitle } from "./replays/plan-steps.ts";
import type { ScreenProps } from "./screens.tsx";

const LOOK_AGAIN_MS = 2_000;
const REASON_CHARS = 300;

const titleOf = (texts: readonly (string | null)[]) =>
  texts.flatMap((text) => (text ? [visibleText(text, 1_000)] : [])).join("\n");

const COLUMNS: readonly Column<Plan>[] = [
  { name: "Plan", cell: (plan) => planTitle(plan, plural(plan.count, "event")) },
  { name: "State", cell: ({ state }) => <StateBadge state={state} /> },
  { name: "Progress", cell: (plan) => <PlanBar plan={plan} hasFigure /> },
  { name: "By", cell: ({ createdBy }) => createdBy },
  { name: "Made", cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    name: "Filter and reason",
    isWide: true,
    cell: ({ filter, reason, stopReason }) => (
      <span class="cut" title={titleOf([filter, reason, stopReason])}>
        <code>{filter === "" ? "all" : <PlainText text={filter} charsMax={REASON_CHARS} />}</code>{" "}
        <span class={stopReason === null ? "soft" : "bad"}>
          <Marked text={cutText(stopReason ?? reason ?? "", REASON_CHARS)} />
        </span>
      </span>
    ),
  },
];

const STATES: readonly Plan["state"][] = ["planned", "running", "paused", "stopped", "done", "cancelled"];

export function ReplaysScreen({ query }: ScreenProps) {
  const isForm = query.new !== undefined;
  const cursor = isForm ? undefined : query.cursor;
  const { action = "", q = "", state = "" } = query;
  const isFiltered = action !== "" || q !== "" || state !== "";
  const wanted = { state, action, q, cursor, limit: 50 };
  const asked = useApi<PlanPage>("/replays", wanted, { everyMs: LOOK_AGAIN_MS });
  const line = plansLine(state, action, q);
  return (
    <Page
      title="Replays"
      lead="Plans to replay or discard events. A plan is frozen when it is created; review it, then run it."
      actions={
        <>
          <RoleNote />
          <ViewsMenu />
          <CliButton command={line} />
          {!isForm && (
            <ActionButton icon="replays" onClick={() => changeQuery({ new: "delivered", cursor: null })}>
              Replay delivered events
            </ActionButton>
          )}
        </>
      }
    >
      {isForm && <DeliveredForm query={query} />}
      <PlanFilters query={query} />
      <Answer asked={asked} command={line}>
        {({ plans, cursor: next }) =>
          plans.length === 0 && isFiltered ? (
            <Empty title="No plans match" icon="search">
              <a href={placeHash("/replays")}>Show all plans</a>
            </Empty>
          ) : plans.length === 0 ? (
            <Empty title="No plans yet" icon="replays">
              To create one, select <a href={placeHash("/dead-letters")}>dead letters</a>, or replay{" "}
              <a href={placeHash("/replays", { new: "delivered" })}>delivered events</a> of a time range.
            </Empty>
          ) : (
            <>
              <PlanTable plans={plans} reload={asked.reload} />
              <Pager cursor={cursor} next={next} />
            </>
          )
        }
      </Answer>
    </Page>
  );
}

/** Actions apply only to selected plans that are listed. */
function PlanTable({ plans, reload }: { readonly plans: readonly Plan[]; reload(): void }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const meant = plans.filter(({ id }) => chosen.has(id));
  const done = () => {
    setChosen(new Set());
    reload();
  };
  return (
    <Card
      isFlush
      title={meant.length === 0 ? "Select plans to act on several at once" : `${plural(meant.length, "plan")} selected`}
      actions={<PlanBulk chosen={meant} done={done} />}
    >
      <Table
        label="Replay plans"
        columns={COLUMNS}
        rows={plans}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => planHref(id)}
        chosen={chosen}
        onChoose={setChosen}
      />
    </Card>
  );
}

function PlanFilters({ query }: Pick<ScreenProps, "query">) {
  const { action = "", q = "", state = "" } = query;
  return (
    <div class="filters">
      <SearchField
        label="Plans whose id, filter, reason or author contains"
        name="q"
        value={q}
        placeholder="id, filter, reason or author"
      />
      <SelectField
        label="State"
        name="state"
        value={state}
        options={[["", "all"], ...STATES.map((it) => [it, it] as const)]}
      />
      <SelectField
        label="Action"
        name="action"
        value={action}
        options={[
          ["", "all"],
          ["replay", "replay"],
          ["discard", "discard"],
        ]}
      />
    </div>
  );
}
