import { Button, CliButton } from "../kit/button.tsx";
import { download } from "../kit/download.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { FilterBox } from "../kit/filter/filter-box.tsx";
import { FilterChips } from "../kit/filter/filter-chips.tsx";
import { filterFault } from "../kit/filter/filter-error.ts";
import { EVENT_STATES, type KnownValues } from "../kit/filter/filter-suggest.ts";
import { plural } from "../kit/format.ts";
import { Card, LiveMark, Page } from "../kit/page.tsx";
import { changeQuery } from "../kit/router.ts";
import { Pager, Table } from "../kit/table.tsx";
import type { EventPage, EventRow, Sources } from "../kit/types.ts";
import { type Asked, useApi } from "../kit/use-api.ts";
import { eventsListLine, eventsTailLine } from "./cli-lines.ts";
import { BrokenSources, Coverage } from "./events/coverage.tsx";
import { eventColumns } from "./events/event-columns.tsx";
import { csvText, jsonText } from "./events/export-text.ts";
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
  const known: KnownValues = { source: sources, type: [...new Set(tail.rows.map(({ type }) => type))].sort() };
  return (
    <Page
      title="Events"
      badge={mode === "off" ? null : <LiveMark state={tail.state} />}
      actions={
        <>
          <CliButton command={mode === "off" ? eventsListLine(q) : eventsTailLine(q)} />
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
          {held === 0 ? "Go on" : `Show ${plural(held, "new event")}`}
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
  // The box above tells what is wrong with the filter, at its place.
  if (asked.error !== null && filterFault(asked.error.message) !== null) return null;
  const { rows } = tail;
  return (
    <Answer asked={asked} command={eventsListLine(q)}>
      {(page) => (
        <>
          <BrokenSources broken={page.broken} />
          {tail.isMissing && (
            <div class="notice warn" role="status">
              <span>More came at once than can be shown: some events are left out here. A filter shows fewer.</span>
            </div>
          )}
          {rows.length === 0 ? (
            <Nothing q={q} page={page} isLive={mode !== "off"} />
          ) : (
            <Card
              isFlush
              title={cursor === undefined ? "Newest first" : "Further back"}
              note={plural(rows.length, "event")}
              actions={<Export rows={rows} />}
            >
              <div class={mode === "on" ? "tailing" : ""}>
                <Table
                  label="Events"
                  columns={eventColumns(isOneSource)}
                  rows={rows}
                  keyOf={rowKey}
                  hrefOf={eventHref}
                  isDim={asked.isLoading && mode === "off"}
                />
              </div>
            </Card>
          )}
          <Coverage page={page} />
          {mode === "off" && <Pager cursor={cursor} next={page.cursor} />}
        </>
      )}
    </Answer>
  );
}

function Export({ rows }: { readonly rows: readonly EventRow[] }) {
  return (
    <span class="row tight">
      <Button kind="quiet" icon="save" title="Save what is shown as JSON" onClick={() => save("json", rows)}>
        JSON
      </Button>
      <Button kind="quiet" icon="save" title="Save what is shown as CSV" onClick={() => save("csv", rows)}>
        CSV
      </Button>
    </span>
  );
}

function save(form: "json" | "csv", rows: readonly EventRow[]): void {
  const name = `events-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.${form}`;
  if (form === "json") download(name, "application/json", jsonText(rows));
  else download(name, "text/csv", csvText(rows));
}

interface NothingProps {
  readonly q: string;
  readonly page: EventPage;
  readonly isLive: boolean;
}

function Nothing({ q, page, isLive }: NothingProps) {
  if (isLive)
    return (
      <Empty title="Nothing has come yet" icon="clock">
        New events that fit appear here by themselves.
      </Empty>
    );
  if (q === "") {
    return (
      <Empty title="No events yet" icon="events">
        Once something is written to an outbox table, it is here. <code>outbox-relay doctor</code> says whether the
        tables are found.
      </Empty>
    );
  }
  const isWhole = page.covered.every(({ isComplete }) => isComplete);
  return (
    <Empty title={isWhole ? "No event is like that" : "None found so far"} icon="search">
      <p>Take a word out of the filter, or look under another state.</p>
      <Button kind="quiet" icon="cross" onClick={() => changeQuery({ q: null, cursor: null })}>
        Clear the filter
      </Button>
    </Empty>
  );
}
