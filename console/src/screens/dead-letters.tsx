import { CliButton } from "../kit/button.tsx";
import { Sparkline } from "../kit/chart.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago } from "../kit/figures.tsx";
import { FilterBox } from "../kit/filter/filter-box.tsx";
import { filterFault } from "../kit/filter/filter-error.ts";
import { withField } from "../kit/filter/filter-text.ts";
import { plural } from "../kit/format.ts";
import { Card, KeyValues, Page, Tabs } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { RoleNote } from "../kit/role-note.tsx";
import type { LetterGroup, LetterGroups } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { groupsLine, lettersLine } from "./cli-lines.ts";
import { Groups, keysText, Some } from "./dead-letters/groups.tsx";
import { Letters, PlanButtons } from "./dead-letters/letters.tsx";
import { eventHref, eventsHref } from "./links.ts";
import type { ScreenProps } from "./screens.tsx";

const LOOK_AGAIN_MS = 10_000;

/** Errors first: a thousand dead letters have mostly one cause. */
export function DeadLettersScreen({ query }: ScreenProps) {
  const { q = "", group, view, cursor } = query;
  const filter = group === undefined ? q : withField(q, "group", group);
  const asked = useApi<LetterGroups>("/dead-letters/groups", { q: filter }, { everyMs: LOOK_AGAIN_MS });
  const groups = asked.data?.groups ?? [];
  const isList = group !== undefined || view === "letters";
  const known = {
    state: ["dead"],
    source: [...new Set(groups.flatMap(({ sources }) => sources))].sort(),
    type: [...new Set(groups.flatMap(({ types }) => types))].sort(),
    group: groups.map((it) => it.group),
  };
  const total = asked.data === null ? null : groups.reduce((sum, { count }) => sum + count, 0);
  return (
    <Page
      title={group === undefined ? "Dead letters" : "Dead letters of one error"}
      back={group === undefined ? undefined : ["All errors", placeHash("/dead-letters", { q })]}
      lead={
        group === undefined
          ? "Events that are not tried any more, by error. Mend the cause, then replay them."
          : undefined
      }
      actions={
        <>
          <RoleNote />
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
                  <Card
                    isFlush
                    title="Errors"
                    note={`${plural(total ?? 0, "event")} by ${plural(groups.length, "error")}`}
                    actions={<PlanButtons filter={filter} ids={[]} total={total} />}
                  >
                    <Groups groups={groups} q={q} isDim={false} />
                  </Card>
                )}
              </>
            )
          }
        </Answer>
      )}
    </Page>
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
    { label: "One by one", href: placeHash("/dead-letters", { q, view: "letters" }), isOpen: isList, count: total },
  ];
  return <Tabs label="How dead letters are listed" tabs={tabs} />;
}

function GroupFacts({ group }: { readonly group: LetterGroup }) {
  const { count, error, exampleId, firstFailedAt, group: fingerprint, lastFailedAt, sources, types } = group;
  return (
    <Card title={`${plural(count, "event")} died of this`}>
      <pre class="error-text">{error}</pre>
      <KeyValues
        items={[
          [
            "When",
            <Sparkline
              isBars
              values={group.histogram}
              label={`From the first to the last: ${group.histogram.join(", ")}`}
            />,
          ],
          ["Keys", group.keys === 0 ? "none" : keysText(group)],
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
              {exampleId}
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
      <Empty title="No dead letter is like that" icon="search">
        <a href={placeHash("/dead-letters")}>Show all dead letters</a>
      </Empty>
    );
  }
  return (
    <Empty title="No dead letters">
      Everything that was written has arrived or is on its way. What was replayed or discarded is under{" "}
      <a href={eventsHref("state:discarded")}>Events</a> and <a href={placeHash("/replays")}>Replays</a>.
    </Empty>
  );
}
