import { StateBadge } from "../kit/badge.tsx";
import { CopyButton } from "../kit/button.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago, Bars } from "../kit/figures.tsx";
import { countText, plural } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Card, KeyValues, Page } from "../kit/page.tsx";
import { placeHash, type Query, segment } from "../kit/place.ts";
import { LongText, PlainText } from "../kit/plain-text.tsx";
import type { Audit, Plan } from "../kit/types.ts";
import { useApi, useWatched } from "../kit/use-api.ts";
import { planVerbLine } from "./cli-lines.ts";
import { AuditCard } from "./event/audit-card.tsx";
import { PatchCard } from "./replays/patch-card.tsx";
import { PlanActions } from "./replays/plan-actions.tsx";
import { PlanItemsCard } from "./replays/plan-items.tsx";
import { PlanProgress, Stepper } from "./replays/plan-progress.tsx";
import { planTitle } from "./replays/plan-steps.ts";
import { PlanStrata } from "./replays/plan-strata.tsx";
import type { ScreenProps } from "./screens.tsx";

const BACK = ["Replays", placeHash("/replays")] as const;
const RESTING_MS = 5_000;
const REASON_CHARS = 2_000;

export function ReplayScreen({ params, query }: ScreenProps) {
  const id = params.id ?? "";
  const asked = useWatched<Plan>(`/replays/${segment(id)}`, {}, lookAgainMs);
  const plan = asked.data;
  if (plan === null && asked.error?.status === 404) {
    return (
      <Page title="Replay" back={BACK}>
        <Empty title="Plan not found" icon="search">
          <code>
            <PlainText text={id} />
          </code>{" "}
          is not the id of a replay plan.
        </Empty>
      </Page>
    );
  }
  return (
    <Page
      title={plan === null ? "Replay" : planTitle(plan, plural(plan.count, "event"))}
      back={BACK}
      badge={plan === null ? null : <StateBadge state={plan.state} />}
      actions={plan === null ? undefined : <PlanActions plan={plan} reload={asked.reload} />}
      lead={
        <span class="ids">
          Plan{" "}
          <code>
            <PlainText text={id} />
          </code>
          <CopyButton text={id} label="Copy the id" />
        </span>
      }
    >
      <Answer asked={asked} command={planVerbLine("show", id)}>
        {(it) => <Shown plan={it} query={query} />}
      </Answer>
    </Page>
  );
}

/** Poll often while the plan runs and while its events are in flight. */
function lookAgainMs(plan: Plan | null): number {
  return plan?.state === "running" || (plan?.progress.sent ?? 0) > 0 ? 1_000 : RESTING_MS;
}

function Shown({ plan, query }: { readonly plan: Plan; readonly query: Query }) {
  const audit = useApi<Audit>("/audit", { target: plan.id, limit: 50 }, { everyMs: RESTING_MS });
  return (
    <>
      <PlanNotice plan={plan} />
      <Card>
        <Stepper plan={plan} />
        <PlanProgress plan={plan} />
      </Card>
      {plan.warnings.length > 0 && !hasEnded(plan) && (
        <div class="notice warn" role="note" aria-label="Warnings">
          <Icon name="dead" />
          <ul>
            {plan.warnings.map((warning) => (
              <li key={warning}>
                <PlainText text={warning} charsMax={REASON_CHARS} />
              </li>
            ))}
          </ul>
        </div>
      )}
      <div class="event-columns">
        <div class="stack">
          <div class="breakdown">
            <Breakdown title="By type" counts={plan.byType} />
            <Breakdown title="By source" counts={plan.bySource} />
            <Breakdown title="By error" counts={plan.byError} />
          </div>
          <PatchCard plan={plan} />
          <PlanStrata plan={plan} />
          <PlanItemsCard plan={plan} query={query} />
        </div>
        <div class="stack">
          <Facts plan={plan} />
          <AuditCard entries={audit.data?.entries ?? []} what="plan" />
        </div>
      </div>
    </>
  );
}

/** Warnings are hidden once the plan has ended. */
function hasEnded({ state }: Plan): boolean {
  return state === "done" || state === "cancelled";
}

function PlanNotice({ plan }: { readonly plan: Plan }) {
  const { action, isServed, state, stopReason } = plan;
  if (state === "planned") {
    return (
      <Notice tone="info" icon="clock">
        <strong>This plan has not run yet.</strong> It {action === "discard" ? "discards" : "sends"} exactly these
        events. Events that are written later are not added. Review the plan, then run it.
      </Notice>
    );
  }
  if (state === "stopped") {
    return (
      <Notice tone="bad" icon="cross">
        <strong>The plan stopped automatically so that no more events fail in the same way.</strong>
        <p class="reason">
          <LongText text={stopReason ?? ""} charsMax={REASON_CHARS} />
        </p>
        <p>
          Fix the cause of the error, then continue: one event of each destination, error and type goes first. Or
          continue without the failed ones. Events that failed again stay dead letters.
        </p>
      </Notice>
    );
  }
  if (state === "running" && !isServed) {
    return (
      <Notice tone="warn" icon="clock">
        <strong>No relay is running this plan.</strong> It continues where it was once a relay is running.
      </Notice>
    );
  }
  if (state === "paused") {
    return (
      <Notice tone="warn" icon="pause">
        <strong>Paused.</strong> Events in flight are finished; the others wait until you resume the plan.
      </Notice>
    );
  }
  return null;
}

interface NoticeProps {
  readonly tone: string;
  readonly icon: Parameters<typeof Icon>[0]["name"];
  readonly children: preact.ComponentChildren;
}

function Notice({ tone, icon, children }: NoticeProps) {
  return (
    <div class={`notice ${tone}`} role="status">
      <Icon name={icon} />
      <div>{children}</div>
    </div>
  );
}

function Breakdown({ title, counts }: { readonly title: string; readonly counts: Readonly<Record<string, number>> }) {
  if (Object.keys(counts).length === 0) return null;
  return (
    <Card title={title}>
      <Bars label={title} counts={counts} />
    </Card>
  );
}

function Facts({ plan }: { readonly plan: Plan }) {
  const { createdAt, createdBy, filter, finishedAt, keys, ratePerSecond, reason, startedAt, startedBy } = plan;
  return (
    <Card title="Facts">
      <KeyValues
        items={[
          [
            "Filter",
            filter === "" ? (
              "all"
            ) : (
              <code>
                <LongText text={filter} charsMax={REASON_CHARS} />
              </code>
            ),
          ],
          ["Keys", keys === 0 ? "none" : countText(keys)],
          ["At most", ratePerSecond === null ? null : `${countText(ratePerSecond)} events per second`],
          ["Reason", reason === null ? null : <LongText text={reason} charsMax={REASON_CHARS} />],
          [
            "Made",
            <>
              by {createdBy}, <Ago at={createdAt} />
            </>,
          ],
          [
            "Started",
            startedAt === null ? null : (
              <>
                by {startedBy}, <Ago at={startedAt} />
              </>
            ),
          ],
          ["Ended", finishedAt === null ? null : <Ago at={finishedAt} />],
        ]}
      />
    </Card>
  );
}
