import { StateBadge } from "../kit/badge.tsx";
import { Button, CliButton, CopyButton } from "../kit/button.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { quotedValue } from "../kit/filter/filter-text.ts";
import { durationText, plural, timeText } from "../kit/format.ts";
import { Card, Page } from "../kit/page.tsx";
import { placeHash, segment } from "../kit/place.ts";
import { PlainText } from "../kit/plain-text.tsx";
import { type Column, Table } from "../kit/table.tsx";
import type { Correlation } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { visibleText } from "../kit/visible-text.ts";
import { eventsListLine } from "./cli-lines.ts";
import { rowKey } from "./events/tail-rows.ts";
import { destinationHref, eventHref, eventsHref } from "./links.ts";
import type { ScreenProps } from "./screens.tsx";

const BACK = ["Events", placeHash("/events")] as const;
const EVERY_MS = 5_000;

/** All events of one correlation id across sources and destinations, in order of time. */
export function CorrelationScreen({ params }: ScreenProps) {
  const id = params.id ?? "";
  const asked = useApi<Correlation>(`/correlations/${segment(id)}`, {}, { everyMs: EVERY_MS });
  const filter = `corr:${quotedValue(id)}`;
  const traceUrl = asked.data?.traceUrl ?? null;
  return (
    <Page
      title="Correlation"
      back={BACK}
      lead={
        <span class="ids">
          <code>
            <PlainText text={id} />
          </code>
          <CopyButton text={id} label="Copy the id" />
        </span>
      }
      actions={
        <>
          <CliButton command={eventsListLine(filter)} />
          <Button href={eventsHref(filter)}>Show as a list</Button>
          {traceUrl !== null && (
            <Button href={traceUrl} kind="primary" icon="right">
              Open the trace
            </Button>
          )}
        </>
      }
    >
      <Answer asked={asked}>
        {({ events, isMore, steps }) =>
          events.length === 0 ? (
            <Empty title="No event has this correlation id" icon="search">
              <a href={eventsHref(id)}>Search for it as an id or a key</a>
            </Empty>
          ) : (
            <Card
              isFlush
              title="Timeline"
              note={`${plural(events.length, "event")}${isMore ? ", more not shown" : ""}; only recorded deliveries`}
            >
              <Table
                label="Timeline, oldest first"
                columns={columnsFrom(steps, events)}
                rows={steps}
                keyOf={(step: Step) => JSON.stringify([step.at, step.what, step.id, step.source, step.pipeline])}
                hrefOf={(step: Step) => eventHref(step)}
              />
            </Card>
          )
        }
      </Answer>
    </Page>
  );
}

type Step = Correlation["steps"][number];

/** Times are relative to the first step. */
function columnsFrom(steps: readonly Step[], events: Correlation["events"]): readonly Column<Step>[] {
  const states = new Map(events.map((event) => [rowKey(event), event.state]));
  const start = Date.parse(steps[0]?.at ?? "");
  const sources = new Set(steps.map(({ source }) => source));
  return [
    {
      name: "Event",
      cell: ({ id, type }) => (
        <span title={visibleText(id)}>
          <PlainText text={type} />
        </span>
      ),
    },
    {
      name: "After",
      isFigure: true,
      cell: ({ at }) => (
        <time class="num" dateTime={at} title={timeText(at)}>
          +{durationText(Date.parse(at) - start)}
        </time>
      ),
    },
    { name: "What", cell: ({ what }) => <StateBadge state={what} /> },
    // Not every delivery is recorded: without this column, a delivered event without a record would look lost.
    { name: "Now", cell: (step) => <StateBadge state={states.get(rowKey(step)) ?? "pending"} /> },
    ...(sources.size > 1 ? [{ name: "Source", cell: ({ source }: Step) => <span class="soft">{source}</span> }] : []),
    {
      name: "Destination",
      cell: ({ destination }) =>
        destination === null ? <span class="faint">–</span> : <a href={destinationHref(destination)}>{destination}</a>,
    },
    { name: "Took", isFigure: true, isExtra: true, cell: ({ durationMs }) => durationText(durationMs) },
    {
      name: "Error",
      isWide: true,
      cell: ({ reason }) => <span class="cut">{reason !== null && <PlainText text={reason} charsMax={300} />}</span>,
    },
  ];
}
