import { useState } from "preact/hooks";
import { Button, CliButton } from "../kit/button.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { ExportLinks } from "../kit/export-links.tsx";
import { FilterBox } from "../kit/filter/filter-box.tsx";
import { FilterChips } from "../kit/filter/filter-chips.tsx";
import { EVENT_STATES, type KnownValues } from "../kit/filter/filter-suggest.ts";
import { filterFault } from "../kit/filter/filter-text.ts";
import { TimeRange } from "../kit/filter/time-range.tsx";
import { plural } from "../kit/format.ts";
import { Card, LiveMark, Page } from "../kit/page.tsx";
import { changeQuery } from "../kit/router.ts";
import { useMay } from "../kit/session.ts";
import { Pager, Table } from "../kit/table.tsx";
import type { EventPage, EventRow, Sources } from "../kit/types.ts";
import { type Asked, useApi } from "../kit/use-api.ts";
import { ViewsMenu } from "../kit/views-menu.tsx";
import { useLive } from "../shell/live-overview.ts";
import { eventsListLine, eventsTailLine } from "./cli-lines.ts";
import { ChosenActions } from "./events/chosen-events.tsx";
import { type Chosen, chosenOf } from "./events/chosen-rows.ts";
import { AlsoInPayloads, BrokenSources, Coverage } from "./events/coverage.tsx";
import { eventColumns } from "./events/event-columns.tsx";
import { type Tail, useTail } from "./events/tail.ts";
import { rowKey } from "./events/tail-rows.ts";
import { eventHref } from "./links.ts";
import type { ScreenProps } from "./screens.tsx";

const NO_ROWS: readonly EventRow[] = [];

export function EventsScreen({ query }: ScreenProps) {
  const { q = "", cursor, live } = query;
  const asked = useApi<EventPage>("/events", { q, cursor, limit: 50 });
  const sources = useApi<Sources>("/sources").data?.sources.map(({ source }) => source) ?? [];
  const mode = live === undefined ? "off" : live === "paused" ? "paused" : "on";
  const tail = useTail(q, asked.data?.events ?? NO_ROWS, mode);
  const destinations = useLive().overview?.destinations.map(({ destination }) => destination) ?? [];
  const types = [...new Set(tail.rows.map(({ type }) => type))].sort();
  const known: KnownValues = { source: sources, destination: destinations, type: types };
  return (
    <Page
      title="Events"
      badge={mode === "off" ? null : <LiveMark state={tail.state} />}
      actions={
        <>
          <CliButton command={mode === "off" ? eventsListLine(q) : eventsTailLine(q)} />
          <ViewsMenu />
          <Follow mode={mode} held={tail.held} />
        </>
      }
    >
      <FilterBox
        label="Filter events"
        value={q}
        known={known}
        error={asked.error}
        placeholder="type:order.* key:42 state:dead age:<1h, or an id"
      />
      <div class="chip-rows">
        <TimeRange q={q} />
        <FilterChips label="By state" field="state" values={EVENT_STATES} query={query} q={q} />
        {sources.length > 1 && <FilterChips label="By source" field="source" values={sources} query={query} q={q} />}
      </div>
      <Found asked={asked} tail={tail} q={q} cursor={cursor} mode={mode} isOneSource={sources.length <= 1} />
    </Page>
  );
}

function Follow({ mode, held }: { readonly mode: "off" | "on" | "paused"; readonly held: number }) {
  if (mode === "off") {
    return (
      <Button icon="play" onClick={() => changeQuery({ live: 1, cursor: null })}>
        Follow
      </Button>
    );
  }
  return (
    <>
      {mode === "on" ? (
        <Button icon="pause" onClick={() => changeQuery({ live: "paused" }, "replace")}>
          Pause
        </Button>
      ) : (
        <Button icon="play" kind="primary" onClick={() => changeQuery({ live: 1 }, "replace")}>
          {held === 0 ? "Continue" : `Show ${plural(held, "new event")}`}
        </Button>
      )}
      <Button icon="cross" label="Stop following" onClick={() => changeQuery({ live: null })} />
    </>
  );
}

interface FoundProps {
  readonly asked: Asked<EventPage>;
  readonly tail: Tail;
  readonly q: string;
  readonly cursor: string | undefined;
  readonly mode: "off" | "on" | "paused";
  readonly isOneSource: boolean;
}

function Found({ asked, tail, q, cursor, mode, isOneSource }: FoundProps) {
  // The filter box above marks the invalid term.
  if (asked.error !== null && filterFault(asked.error.message) !== null) return null;
  const { rows } = tail;
  return (
    <Answer asked={asked} command={eventsListLine(q)}>
      {(page) => (
        <>
          <BrokenSources broken={page.broken} />
          {tail.isMissing && (
            <div class="notice warn" role="status">
              <span>Too many events arrived at once: some are not shown. Narrow the filter to see all.</span>
            </div>
          )}
          {rows.length === 0 ? (
            <Nothing q={q} page={page} isLive={mode !== "off"} />
          ) : (
            <EventsCard
              key={q}
              rows={rows}
              q={q}
              title={cursor === undefined ? "Newest first" : "Older events"}
              isTailing={mode === "on"}
              isOneSource={isOneSource}
              isDim={asked.isLoading && mode === "off"}
            />
          )}
          <Coverage page={page} />
          {mode === "off" && <AlsoInPayloads page={page} />}
          {mode === "off" && <Pager cursor={cursor} next={page.cursor} />}
        </>
      )}
    </Answer>
  );
}

interface EventsCardProps {
  readonly rows: readonly EventRow[];
  readonly q: string;
  readonly title: string;
  readonly isTailing: boolean;
  readonly isOneSource: boolean;
  readonly isDim: boolean;
}

/** Selected events stay selected on other pages while the filter does not change. */
function EventsCard({ rows, q, title, isTailing, isOneSource, isDim }: EventsCardProps) {
  const [chosen, setChosen] = useState<Chosen>(new Map());
  const may = useMay("operator");
  return (
    <Card
      isFlush
      title={chosen.size === 0 ? title : `${plural(chosen.size, "event")} chosen`}
      note={chosen.size === 0 ? plural(rows.length, "event") : undefined}
      actions={chosen.size === 0 ? <ExportLinks list="events" q={q} /> : <ChosenActions chosen={chosen} />}
    >
      <div class={isTailing ? "tailing" : ""}>
        <Table
          label="Events"
          columns={eventColumns(isOneSource)}
          rows={rows}
          keyOf={rowKey}
          hrefOf={eventHref}
          chosen={may ? new Set(chosen.keys()) : undefined}
          onChoose={(keys) => setChosen(chosenOf(chosen, rows, keys))}
          isDim={isDim}
        />
      </div>
    </Card>
  );
}

interface NothingProps {
  readonly q: string;
  readonly page: EventPage;
  readonly isLive: boolean;
}

function Nothing({ q, page, isLive }: NothingProps) {
  if (isLive)
    return (
      <Empty title="No new events yet" icon="clock">
        New events that match appear here automatically.
      </Empty>
    );
  if (q === "") {
    return (
      <Empty title="No events yet" icon="events">
        Events appear here once they are written to an outbox table. <code>outbox-relay doctor</code> checks whether the
        relay finds your tables.
      </Empty>
    );
  }
  const isWhole = page.covered.every(({ isComplete }) => isComplete);
  return (
    <Empty title={isWhole ? "No events match" : "No match so far"} icon="search">
      <p>Remove a term from the filter, or try another state.</p>
      <Button kind="quiet" icon="cross" onClick={() => changeQuery({ q: null, cursor: null })}>
        Clear the filter
      </Button>
    </Empty>
  );
}
