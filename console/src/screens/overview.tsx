import { StateBadge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { TimeChart } from "../kit/chart.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago, Count, Tile } from "../kit/figures.tsx";
import { countText, durationText, plural, rateText, shortCount } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Card, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import { PlainText } from "../kit/plain-text.tsx";
import type { HealthCause, Overview, Point, Series } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { useLive } from "../shell/live-overview.ts";
import { DestinationTiles } from "./destinations.tsx";

/** The state of the service at a glance; every figure links to the screen with the actions for it. */
export function OverviewScreen() {
  const asked = useApi<Overview>("/overview");
  const live = useLive();
  // Once the stream has sent a message, it is newer than the request.
  const newest = { ...asked, data: live.overview ?? asked.data };
  return (
    <Page
      title="Overview"
      badge={newest.data === null ? null : <StateBadge state={newest.data.grade} />}
      actions={<CliButton command={command("status")} />}
    >
      <Answer asked={newest} command={command("status")}>
        {(overview) => (
          <>
            <Causes causes={overview.causes} />
            <Tiles overview={overview} />
            <Charts points={live.points} />
            <Destinations destinations={overview.destinations} />
            <Instances instances={overview.instances} />
          </>
        )}
      </Answer>
    </Page>
  );
}

const OLD_MS = 60_000;
/** A backlog younger than this is normal: events always wait between two polls. */
const PACE_MS = 5_000;

function Tiles({ overview }: { readonly overview: Overview }) {
  const { deadLetters, isEstimate, isUnroutedEstimate, oldestAgeMs, parkedKeys, pending, retrying, unrouted } =
    overview;
  const isOld = (oldestAgeMs ?? 0) > OLD_MS;
  const hasUnrouted = (unrouted ?? 0) > 0;
  return (
    <div class={hasUnrouted ? "tiles seven" : "tiles"}>
      <Tile
        label="Oldest pending event"
        value={durationText(oldestAgeMs)}
        tone={isOld ? "warn" : undefined}
        note={pending === 0 ? restText(overview) : oldestAgeMs === null ? "unknown" : "waiting since it was due"}
        href={placeHash("/events", { q: "state:pending" })}
      />
      <Tile
        label="Pending"
        value={`${isEstimate ? "≈ " : ""}${shortCount(pending)}`}
        note={drainText(overview)}
        href={placeHash("/events", { q: "state:pending" })}
      />
      <Tile
        label="In"
        value={rateText(overview.writtenPerSecond)}
        unit={overview.writtenPerSecond === null ? undefined : "/s"}
        note="events written"
      />
      <Tile
        label="Out"
        value={rateText(overview.publishedPerSecond)}
        unit="/s"
        note={`${countText(overview.publishedTotal)} in total`}
      />
      <Tile
        label="Parked keys"
        value={shortCount(parkedKeys)}
        tone={parkedKeys > 0 ? "warn" : undefined}
        note={`${countText(retrying)} retrying`}
        href={placeHash("/keys")}
        hint="parked"
      />
      <Tile
        label="Dead letters"
        value={shortCount(deadLetters)}
        tone={deadLetters > 0 ? "bad" : undefined}
        note={deadLetters > 0 ? lettersText(overview) : "none"}
        href={placeHash("/dead-letters")}
        hint="dead"
      />
      {hasUnrouted && (
        <Tile
          label="Unrouted"
          value={`${isUnroutedEstimate ? "≈ " : ""}${shortCount(unrouted)}`}
          tone="bad"
          note="no matching route"
          href={placeHash("/events", { q: "state:unrouted" })}
        />
      )}
    </div>
  );
}

/** The events that wait although none is pending. */
function restText({ behindDeadLetters, isEstimate, isUnroutedEstimate, unrouted }: Overview): string {
  const about = (isIt: boolean) => (isIt ? "≈ " : "");
  if ((behindDeadLetters ?? 0) > 0)
    return `${about(isEstimate)}${countText(behindDeadLetters)} wait behind dead letters`;
  if ((unrouted ?? 0) === 0) return "no events waiting";
  return `${about(isUnroutedEstimate)}${countText(unrouted)} without a route`;
}

function lettersText({ behindDeadLetters, isEstimate }: Overview): string {
  if (behindDeadLetters === null || behindDeadLetters === 0) return "replay or discard them";
  return `${isEstimate ? "≈ " : ""}${countText(behindDeadLetters)} events wait behind them`;
}

function drainText(overview: Overview): string {
  const { drainMs, oldestAgeMs, pending } = overview;
  if (pending === null) return "unknown";
  if (pending === 0) return restText(overview);
  if (drainMs !== null) return `drained in about ${durationText(drainMs)}`;
  return (oldestAgeMs ?? 0) < PACE_MS ? "keeping up" : "not shrinking";
}

function Charts({ points }: { readonly points: readonly Point[] }) {
  const series = useApi<Series>("/series");
  return (
    <Answer asked={series}>
      {({ points: before, markers }) => {
        const from = points[0]?.at;
        const all = [...before.filter(({ at }) => from === undefined || at < from), ...points];
        const times = all.map(({ at }) => Date.parse(at));
        const marks = markers.map(({ at, what, pipeline }) => ({
          at: Date.parse(at),
          text: pipeline === null ? what : `${what}: ${pipeline}`,
        }));
        if (all.length < 2)
          return <Empty title="Charts appear in a few seconds, with the second data point" icon="overview" />;
        return (
          <div class="two">
            <Card title="Throughput" note="events per second">
              <TimeChart
                label="Throughput"
                times={times}
                markers={marks}
                format={rateText}
                lines={[
                  { name: "written", tone: "plain", isDashed: true, values: all.map(({ written }) => written) },
                  { name: "published", tone: "accent", isArea: true, values: all.map(({ published }) => published) },
                  { name: "failed", tone: "bad", values: all.map(({ failed }) => failed) },
                ]}
              />
            </Card>
            <Card title="Age of the oldest event" note="since it was written">
              <TimeChart
                label="Age of the oldest event"
                times={times}
                markers={marks}
                format={durationText}
                lines={[{ name: "oldest", tone: "info", isArea: true, values: all.map(ageOf) }]}
              />
            </Card>
          </div>
        );
      }}
    </Answer>
  );
}

/** The age is 0 while no events are pending. */
function ageOf({ oldestAgeMs, pending }: Point): number | null {
  return pending === 0 ? 0 : oldestAgeMs;
}

function Destinations({ destinations }: Pick<Overview, "destinations">) {
  return (
    <Card title="Destinations" note={plural(destinations.length, "destination")}>
      <DestinationTiles destinations={destinations} />
    </Card>
  );
}

function Instances({ instances }: Pick<Overview, "instances">) {
  return (
    <Card
      title="Instances"
      note={plural(instances.length, "relay")}
      hint="lane"
      actions={<a href={placeHash("/instances")}>Show all</a>}
    >
      {instances.length === 0 && (
        <Empty title="No relay is running" icon="unplug">
          No events are delivered. Start one: <code>outbox-relay run</code>
        </Empty>
      )}
      <ul class="instances">
        {instances.map(({ id, joinedAt, lanes, name }) => (
          <li key={id}>
            <Icon name="instances" />
            <strong>{name}</strong>
            <span>
              <Count value={lanes} /> {lanes === 1 ? "lane" : "lanes"}
            </span>
            <span class="faint">
              joined <Ago at={joinedAt} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const SHOWN = 3;

/** Groups causes of the same kind: an unreachable database affects every source. */
function Causes({ causes }: { readonly causes: readonly HealthCause[] }) {
  if (causes.length === 0) return null;
  const byKind = Map.groupBy(causes, ({ code, fix }) => JSON.stringify([code, fix]));
  return (
    <section class="problems" aria-label="Causes">
      {[...byKind].map(([kind, alike]) => (
        <div key={kind} class={alike[0]?.grade === "attention" ? "" : "bad"}>
          <Icon name={alike[0]?.grade === "attention" ? "dead" : "cross"} />
          <div>
            {alike.slice(0, SHOWN).map((cause) => (
              <CauseLine key={cause.what} cause={cause} />
            ))}
            {alike.length > SHOWN && (
              <details>
                <summary>and {alike.length - SHOWN} more</summary>
                {alike.slice(SHOWN).map((cause) => (
                  <CauseLine key={cause.what} cause={cause} />
                ))}
              </details>
            )}
            {alike[0]?.fix != null && <p>{alike[0].fix}</p>}
          </div>
        </div>
      ))}
    </section>
  );
}

function CauseLine({ cause: { link, runbook, since, what } }: { readonly cause: HealthCause }) {
  return (
    <div>
      <strong>
        <a href={link.slice(1)}>
          <PlainText text={what} charsMax={500} />
        </a>
        {since !== null && (
          <>
            {" · "}
            <Ago at={since} />
          </>
        )}
      </strong>
      {runbook !== undefined && <span class="faint"> {runbook}</span>}
    </div>
  );
}
