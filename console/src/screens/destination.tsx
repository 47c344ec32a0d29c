import { RoleNote } from "../kit/action-button.tsx";
import { Badge, StateBadge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago, Count, Span, Tile } from "../kit/figures.tsx";
import { quotedValue } from "../kit/filter/filter-text.ts";
import { countText, durationText, plural, rateText, shortCount } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Card, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { Because, LongText, PlainText } from "../kit/plain-text.tsx";
import { type Column, Table } from "../kit/table.tsx";
import type { Destination, KnownDestination, KnownDestinations, PipelineStatus, Status } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { useLive } from "../shell/live-overview.ts";
import { DestinationActions } from "./destinations/destination-actions.tsx";
import { LastError, SlowBadge } from "./destinations/destination-tile.tsx";
import { eventsHref, pipelineHref } from "./links.ts";
import type { ScreenProps } from "./screens.tsx";

const EVERY_MS = 3_000;
const BACK = ["Destinations", placeHash("/destinations")] as const;

/** State of one destination, its pending events, and one switch for all its pipelines. */
export function DestinationScreen({ params }: ScreenProps) {
  const name = params.name ?? "";
  const status = useApi<Status>("/status", {}, { everyMs: EVERY_MS });
  const known = useApi<KnownDestinations>("/destinations", {}, { everyMs: EVERY_MS });
  const { overview } = useLive();
  const seen = overview?.destinations.find(({ destination }) => destination === name) ?? null;
  const it = known.data?.destinations.find(({ destination }) => destination === name) ?? null;
  const pipelines = status.data?.pipelines.filter(({ pipeline }) => it?.pipelines.includes(pipeline)) ?? [];
  const isPaused = pipelines.length > 0 && pipelines.every(({ pause }) => pause !== null);
  const reload = () => {
    status.reload();
    known.reload();
  };
  return (
    <Page
      title={name}
      back={BACK}
      badge={
        seen === null ? null : (
          <>
            <SlowBadge it={seen} />
            <StateBadge state={isPaused ? "paused" : seen.state} />
          </>
        )
      }
      actions={
        <>
          <RoleNote />
          <CliButton command={command(isPaused ? "resume" : "pause", "--destination", name)} />
          {it !== null && <DestinationActions it={it} isPaused={isPaused} reload={reload} />}
        </>
      }
    >
      <Answer asked={known}>
        {() => (
          <>
            {it === null && seen === null && (
              <Empty title="No pipeline has a destination with this name" icon="search">
                <a href={BACK[1]}>Show all destinations</a>
              </Empty>
            )}
            {it !== null && <Wishes it={it} relays={overview?.instances.length ?? 0} />}
            {seen !== null && <Figures it={seen} />}
            {seen !== null && <Circuits it={seen} />}
            {it !== null && <Pipelines rows={pipelines} isLoading={status.data === null} />}
          </>
        )}
      </Answer>
    </Page>
  );
}

/** The pause and the limit of the whole destination. */
function Wishes({
  it: { limit, pause, pipelines },
  relays,
}: {
  readonly it: KnownDestination;
  readonly relays: number;
}) {
  const most = limit === null ? 0 : limit.perSecond * pipelines.length * Math.max(1, relays);
  return (
    <>
      {pause !== null && (
        <div class="notice warn" role="status">
          <Icon name="pause" />
          <div>
            <strong>
              Paused by {pause.by} <Ago at={pause.at} />
            </strong>
            <Because reason={pause.reason} />
            <p>
              Events wait in the outbox. A pipeline that is added while the destination is paused starts paused too.
            </p>
          </div>
        </div>
      )}
      {limit !== null && (
        <p class="aside">
          Limited by {limit.by ?? "an operator"} to {limit.perSecond} events per second for each of{" "}
          {plural(pipelines.length, "pipeline")} and {plural(Math.max(1, relays), "relay")}: {countText(most)} per
          second together, at most
          <Because reason={limit.reason} />.
        </p>
      )}
    </>
  );
}

function Figures({ it }: { readonly it: Destination }) {
  const { lastFiveMinutes: fiveMinutes, lastMinute: minute } = it.answers ?? {};
  const place = `destination:${quotedValue(it.destination)}`;
  return (
    <div class="tiles four">
      <Tile label="Out" value={rateText(it.publishedPerSecond)} unit="/s" note="events delivered" />
      <Tile
        label="Failed"
        value={rateText(it.failedPerSecond)}
        unit="/s"
        tone={it.failedPerSecond > 0 ? "bad" : undefined}
        note="attempts"
      />
      <Tile
        label="Answer p50"
        value={durationText(minute?.p50Ms ?? null)}
        tone={it.answers?.slow == null ? undefined : "warn"}
        note={`5 min: ${durationText(fiveMinutes?.p50Ms ?? null)}, from send to answer`}
      />
      <Tile
        label="Answer p99"
        value={durationText(minute?.p99Ms ?? null)}
        note={`5 min: ${durationText(fiveMinutes?.p99Ms ?? null)}, from send to answer`}
      />
      <Tile
        label="Age p50"
        value={durationText(it.p50Ms)}
        note={`p99: ${durationText(it.p99Ms)}, from write to answer`}
        hint="age"
      />
      <Tile
        label="Pending"
        value={`${it.isEstimate ? "≈ " : ""}${shortCount(it.pending)}`}
        note={behindText(it)}
        href={eventsHref(`state:pending ${place}`)}
      />
      <Tile label="Oldest pending event" value={durationText(it.oldestAgeMs)} note="waiting since it was due" />
      <Tile
        label="Dead letters"
        value={shortCount(it.deadLetters)}
        tone={it.deadLetters > 0 ? "bad" : undefined}
        note={it.deadLetters > 0 ? "in all its pipelines" : "none"}
        href={placeHash("/dead-letters", { q: place })}
        hint="dead"
      />
    </div>
  );
}

/** The relay delivers pending events by itself; events behind dead letters wait for an operator. */
function behindText({ behindDeadLetters }: Destination): string {
  if (behindDeadLetters === null || behindDeadLetters === 0) return "none behind dead letters";
  return `${countText(behindDeadLetters)} more behind dead letters`;
}

function Circuits({ it }: { readonly it: Destination }) {
  const { circuits } = it;
  return (
    <Card title="Circuits" hint="circuit" note={circuits.length === 0 ? "all closed: events are delivered" : undefined}>
      {circuits.length > 0 && (
        <ul class="stack tight" aria-label="Open circuits">
          {circuits.map(({ topic, reason }) => (
            <li key={topic ?? ""}>
              <Badge tone="bad" icon="bolt">
                {topic === null ? "the whole destination" : <PlainText text={topic} />}
              </Badge>{" "}
              <LongText text={reason} charsMax={500} />
            </li>
          ))}
        </ul>
      )}
      {it.lastError === null ? <p class="faint">No error since this relay started.</p> : <LastError it={it} />}
    </Card>
  );
}

const COLUMNS: readonly Column<PipelineStatus>[] = [
  { name: "Pipeline", isWide: true, cell: ({ pipeline }) => pipeline },
  { name: "State", cell: ({ pause, state }) => <StateBadge state={state} title={pause?.reason ?? undefined} /> },
  {
    name: "Pending",
    isFigure: true,
    cell: ({ isEstimate, pending }) => <Count value={pending} isEstimate={isEstimate} />,
  },
  { name: "Oldest", isFigure: true, cell: ({ oldestAgeMs }) => <Span ms={oldestAgeMs} /> },
  { name: "Retrying", isFigure: true, isExtra: true, cell: ({ retrying }) => <Count value={retrying} /> },
  { name: "Parked keys", isFigure: true, cell: ({ parkedKeys }) => <Count value={parkedKeys} /> },
  { name: "Dead", isFigure: true, cell: ({ deadLetters }) => <Count value={deadLetters} /> },
  {
    name: "Behind dead letters",
    isFigure: true,
    cell: ({ behindDeadLetters, isEstimate }) => <Count value={behindDeadLetters} isEstimate={isEstimate} />,
  },
  {
    name: "Limit",
    isExtra: true,
    cell: ({ limit }) => (limit === null ? <span class="faint">none</span> : `${limit.perSecond} /s`),
  },
];

function Pipelines({ rows, isLoading }: { readonly rows: readonly PipelineStatus[]; readonly isLoading: boolean }) {
  return (
    <Card title="Pipelines" note={plural(rows.length, "pipeline")} hint="parkedOrDead" isFlush>
      <Table
        label="Pipelines to this destination"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ pipeline }) => pipeline}
        hrefOf={({ pipeline }) => pipelineHref(pipeline)}
        isDim={isLoading}
      />
    </Card>
  );
}
