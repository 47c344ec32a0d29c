import { Badge, StateBadge } from "../kit/badge.tsx";
import { CliButton } from "../kit/button.tsx";
import { TimeChart } from "../kit/chart.tsx";
import { command } from "../kit/command.ts";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago, Count, Tile } from "../kit/figures.tsx";
import { countText, durationText, plural, rateText, shortCount } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Card, Page } from "../kit/page.tsx";
import { placeHash } from "../kit/place.ts";
import type { Destination, Overview, Point, Series } from "../kit/types.ts";
import { useApi } from "../kit/use-api.ts";
import { useLive } from "../shell/live-overview.ts";

/** How it stands, at a glance; everything on it leads to where one can do something. */
export function OverviewScreen() {
  const asked = useApi<Overview>("/overview");
  const live = useLive();
  // The stream is newer from its first message on.
  const newest = { ...asked, data: live.overview ?? asked.data };
  return (
    <Page
      title="Overview"
      badge={newest.data === null ? null : <StateBadge state={newest.data.health} />}
      actions={<CliButton command={command("status")} />}
    >
      <Answer asked={newest} command={command("status")}>
        {(overview) => (
          <>
            <Problems problems={overview.problems} />
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

const PROBLEMS_SHOWN = 3;

/** What one thing mends stands together: a database that is away makes every source complain. */
function Problems({ problems }: Pick<Overview, "problems">) {
  if (problems.length === 0) return null;
  const byFix = Map.groupBy(problems, ({ fix }) => fix);
  return (
    <section class="problems" aria-label="Problems">
      {[...byFix].map(([fix, alike]) => (
        <div key={fix}>
          <Icon name="dead" />
          <div>
            {alike.slice(0, PROBLEMS_SHOWN).map(({ what }) => (
              <strong key={what}>{what}</strong>
            ))}
            {alike.length > PROBLEMS_SHOWN && (
              <details>
                <summary>and {alike.length - PROBLEMS_SHOWN} more</summary>
                {alike.slice(PROBLEMS_SHOWN).map(({ what }) => (
                  <strong key={what}>{what}</strong>
                ))}
              </details>
            )}
            {fix !== null && <p>{fix}</p>}
          </div>
        </div>
      ))}
    </section>
  );
}

const OLD_MS = 60_000;
/** Between two looks something always waits. */
const PACE_MS = 5_000;

function Tiles({ overview }: { readonly overview: Overview }) {
  const { deadLetters, isEstimate, oldestAgeMs, parkedKeys, pending, retrying } = overview;
  const isOld = (oldestAgeMs ?? 0) > OLD_MS;
  return (
    <div class="tiles">
      <Tile
        label="Oldest event waits"
        value={durationText(oldestAgeMs)}
        tone={isOld ? "warn" : undefined}
        note={pending === 0 ? "nothing waits" : oldestAgeMs === null ? "not known at present" : "since it was written"}
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
        note={`${countText(overview.publishedTotal)} in all`}
      />
      <Tile
        label="Parked keys"
        value={shortCount(parkedKeys)}
        tone={parkedKeys > 0 ? "warn" : undefined}
        note={`${countText(retrying)} retrying`}
        href={placeHash("/keys")}
      />
      <Tile
        label="Dead letters"
        value={shortCount(deadLetters)}
        tone={deadLetters > 0 ? "bad" : undefined}
        note={deadLetters > 0 ? "wait for a person" : "none"}
        href={placeHash("/dead-letters")}
      />
    </div>
  );
}

function drainText({ drainMs, oldestAgeMs, pending }: Overview): string {
  if (pending === null) return "not known at present";
  if (pending === 0) return "nothing waits";
  if (drainMs !== null) return `out in about ${durationText(drainMs)}`;
  return (oldestAgeMs ?? 0) < PACE_MS ? "keeps pace" : "does not shrink at present";
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
          return <Empty title="The charts begin with the second figure, in a few seconds" icon="overview" />;
        return (
          <div class="two">
            <Card title="Throughput" note="events a second">
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
            <Card title="Age of the oldest event" note="from its writing">
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

/** Where nothing waits there is no oldest one, and nobody is late. */
function ageOf({ oldestAgeMs, pending }: Point): number | null {
  return pending === 0 ? 0 : oldestAgeMs;
}

function Destinations({ destinations }: Pick<Overview, "destinations">) {
  return (
    <Card title="Destinations" note={plural(destinations.length, "destination")}>
      {destinations.length === 0 && (
        <Empty title="No destination yet" icon="pipelines">
          The first one shows up as soon as a relay runs with a route to it.
        </Empty>
      )}
      <div class="destinations">
        {destinations.map((it) => (
          <DestinationTile key={it.destination} it={it} />
        ))}
      </div>
    </Card>
  );
}

function DestinationTile({ it }: { readonly it: Destination }) {
  const name = it.pipelines[0] ?? "";
  return (
    <article class="destination">
      <header>
        <a href={placeHash("/pipelines", it.pipelines.length === 1 ? { open: name } : { q: it.destination })}>
          {it.destination}
        </a>
        <StateBadge state={it.state} />
      </header>
      <dl>
        <Figure name="out" value={`${rateText(it.publishedPerSecond)} /s`} />
        <Figure name="failed" value={`${rateText(it.failedPerSecond)} /s`} isBad={it.failedPerSecond > 0} />
        <Figure name="p50" value={durationText(it.p50Ms)} />
        <Figure name="p99" value={durationText(it.p99Ms)} />
        <Figure name="pending" value={shortCount(it.pending)} />
        <Figure name="oldest" value={durationText(it.oldestAgeMs)} />
      </dl>
      {it.lastError !== null && (
        <p class="last-error" title={it.lastError.reason}>
          <Badge tone="bad" icon="cross">
            <Ago at={it.lastError.at} />
          </Badge>{" "}
          {it.lastError.reason}
        </p>
      )}
    </article>
  );
}

function Figure({
  name,
  value,
  isBad = false,
}: {
  readonly name: string;
  readonly value: string;
  readonly isBad?: boolean;
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class={isBad ? "num bad" : "num"}>{value}</dd>
    </div>
  );
}

function Instances({ instances }: Pick<Overview, "instances">) {
  return (
    <Card
      title="Instances"
      note={plural(instances.length, "relay")}
      actions={<a href={placeHash("/instances")}>All about them</a>}
    >
      {instances.length === 0 && (
        <Empty title="No relay runs" icon="unplug">
          Nothing is delivered. Start one: <code>outbox-relay run</code>
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
