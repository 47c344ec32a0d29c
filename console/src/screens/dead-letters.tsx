import { RoleNote } from "../kit/action-button.tsx";
import { CliButton } from "../kit/button.tsx";
import { Sparkline } from "../kit/chart.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { ExportLinks } from "../kit/export-links.tsx";
import { Ago } from "../kit/figures.tsx";
import { FilterBox } from "../kit/filter/filter-box.tsx";
import { filterFault, withField } from "../kit/filter/filter-text.ts";
import { TimeRange } from "../kit/filter/time-range.tsx";
import { plural } from "../kit/format.ts";
import { Card, KeyValues, Page, Tabs } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { LongText, PlainText } from "../kit/plain-text.tsx";
import type { LetterGroup, LetterGroups } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import { groupsLine, lettersLine } from "./cli-lines.ts";
import { countOf, Groups, keysText, Some } from "./dead-letters/groups.tsx";
import { Letters } from "./dead-letters/letters.tsx";
import { eventHref, eventsHref } from "./links.ts";
import type { ScreenProps } from "./screens.tsx";

const LOOK_AGAIN_MS = 10_000;

/** Groups by error first: a thousand dead letters usually have one cause. */
export function DeadLettersScreen({ query }: ScreenProps) {
  const { q = "", group, view, cursor } = query;
  const filter = group === undefined ? q : withField(q, "group", group);
  const asked = useApi<LetterGroups>("/dead-letters/groups", { q: filter }, { everyMs: LOOK_AGAIN_MS });
  const groups = asked.data?.groups ?? [];
  const isList = group !== undefined || view === "letters";
  const known = {
    state: ["dead"],
    source: [...new Set(groups.flatMap(({ sources }) => sources))].sort(),
    destination: [...new Set(groups.flatMap((it) => it.destinations))].sort(),
    type: [...new Set(groups.flatMap(({ types }) => types))].sort(),
    group: groups.map((it) => it.group),
  };
  const total = asked.data === null ? null : countOf(groups);
  return (
    <Page
      title={group === undefined ? "Dead letters" : "Dead letters with one error"}
      back={group === undefined ? undefined : ["All errors", placeHash("/dead-letters", { q })]}
      lead={
        group === undefined
          ? "Failed events that are not retried automatically, grouped by error. Fix the cause, then replay them."
          : undefined
      }
      actions={
        <>
          <RoleNote />
          <ViewsMenu />
          <CliButton command={isList ? lettersLine(filter) : groupsLine(filter)} />
        </>
      }
    >
      <FilterBox
        label="Filter dead letters"
        value={q}
        known={known}
        error={asked.error}
        placeholder="type:order.* key:42 source:shop.outbox since:2h"
      />
      <Tools q={q} filter={filter} />
      {asked.error !== null && filterFault(asked.error.message) !== null ? null : (
        <Answer asked={asked} command={groupsLine(filter)}>
          {() =>
            groups.length === 0 ? (
              <Nothing isFiltered={filter !== ""} />
            ) : (
              <>
                {group === undefined ? (
                  <Views q={q} isList={isList} total={total ?? 0} errors={groups.length} />
                ) : (
                  groups[0] !== undefined && <GroupFacts group={groups[0]} />
                )}
                {isList ? (
                  <Letters key={filter} q={q} group={group ?? null} total={total} cursor={cursor} />
                ) : (
                  <Groups key={q} groups={groups} q={q} total={total ?? 0} />
                )}
              </>
            )
          }
        </Answer>
      )}
    </Page>
  );
}

function Tools({ q, filter }: { readonly q: string; readonly filter: string }) {
  return (
    <div class="chip-rows">
      <TimeRange q={q} />
      <ExportLinks list="dead-letters" q={filter} />
    </div>
  );
}

interface ViewsProps {
  readonly q: string;
  readonly isList: boolean;
  readonly total: number;
  readonly errors: number;
}

function Views({ q, isList, total, errors }: ViewsProps) {
  const tabs = [
    { label: "By error", href: placeHash("/dead-letters", { q }), isOpen: !isList, count: errors },
    { label: "As a list", href: placeHash("/dead-letters", { q, view: "letters" }), isOpen: isList, count: total },
  ];
  return <Tabs label="View of dead letters" tabs={tabs} />;
}

function GroupFacts({ group }: { readonly group: LetterGroup }) {
  const { count, error, exampleId, firstFailedAt, group: fingerprint, lastFailedAt, sources, types } = group;
  return (
    <Card title={`${plural(count, "event")} with this error`}>
      <pre class="error-text">
        <LongText text={error} charsMax={2_000} />
      </pre>
      <p class="aside">The newest one, unmodified:</p>
      <pre class="error-text">
        <LongText text={group.example} charsMax={2_000} />
      </pre>
      <KeyValues
        items={[
          [
            "When",
            <Sparkline
              isBars
              values={group.histogram}
              label={`Over time, from first to last: ${group.histogram.join(", ")}`}
            />,
          ],
          ["Keys", group.keys === 0 ? "none" : keysText(group)],
          ["Status", group.status === null ? null : String(group.status)],
          ["Destinations", <Some names={group.destinations} />],
          ["Types", <Some names={types} />],
          ["Sources", <Some names={sources} />],
          [
            "First, last",
            <span>
              <Ago at={firstFailedAt} />, <Ago at={lastFailedAt} />
            </span>,
          ],
          [
            "Example",
            <a class="mono" href={eventHref({ id: exampleId, source: sources.length === 1 ? (sources[0] ?? "") : "" })}>
              <PlainText text={exampleId} />
            </a>,
          ],
          ["Fingerprint", <code>{fingerprint}</code>],
        ]}
      />
    </Card>
  );
}

function Nothing({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No dead letters match" icon="search">
        <a href={placeHash("/dead-letters")}>Show all dead letters</a>
      </Empty>
    );
  }
  return (
    <Empty title="No dead letters">
      Every event was delivered or is in progress. Replayed and discarded events are under{" "}
      <a href={eventsHref("state:discarded")}>Events</a> and <a href={placeHash("/replays")}>Replays</a>.
    </Empty>
  );
}
