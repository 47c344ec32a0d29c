import { Badge, StateBadge } from "../kit/badge.tsx";
import { CopyButton } from "../kit/button.tsx";
import { Answer, Empty } from "../kit/error-box.tsx";
import { Ago, Due } from "../kit/figures.tsx";
import { timeText } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { Card, KeyValues, Page } from "../kit/page.tsx";
import { placeHash, segment } from "../kit/place.ts";
import { LongText, PlainText } from "../kit/plain-text.tsx";
import type { ShownEvent } from "../kit/types.ts";
import { useWatched } from "../kit/use-api.ts";
import { visibleText } from "../kit/visible-text.ts";
import { useLive } from "../shell/live-overview.ts";
import { eventShowLine } from "./cli-lines.ts";
import { AttemptsCard } from "./event/attempts-card.tsx";
import { AuditCard } from "./event/audit-card.tsx";
import { EditsCard } from "./event/edits-card.tsx";
import { EventActions } from "./event/event-actions.tsx";
import { HeadersCard } from "./event/headers-card.tsx";
import { PayloadCard } from "./event/payload-card.tsx";
import { CorrelationCard, KeyCard } from "./event/relatives-card.tsx";
import { standingOf } from "./event/standing.ts";
import { correlationHref, destinationHref, eventHref, eventsHref, keyFilter } from "./links.ts";
import type { ScreenProps } from "./screens.tsx";

/** Characters shown in the window title, and of an error until it is expanded. */
const TITLE_CHARS = 100;
const REASON_CHARS = 2_000;

const BACK = ["Events", placeHash("/events")] as const;

/** Poll often while the event is in progress, and after its delivery until its attempt is recorded. */
function lookAgainMs(event: ShownEvent | null): number {
  if (event === null || event.state === "pending" || event.state === "retrying") return 2_000;
  return event.state === "delivered" || event.state === "discarded" ? 10_000 : 5_000;
}

export function EventScreen({ params, query }: ScreenProps) {
  const id = params.id ?? "";
  const source = query.source ?? "";
  const asked = useWatched<ShownEvent>(`/events/${segment(id)}`, { source }, lookAgainMs);
  const { data, error } = asked;
  if (data === null && error?.status === 404) return <NotThere id={id} />;
  return (
    <Page
      title={data === null ? "Event" : visibleText(data.type, TITLE_CHARS)}
      heading={data === null ? undefined : <LongText text={data.type} />}
      back={BACK}
      badge={data === null ? null : <StateBadge state={data.state} />}
      actions={data === null ? undefined : <EventActions event={data} reload={asked.reload} />}
      lead={
        <span class="ids">
          <code>
            <LongText text={id} />
          </code>
          <CopyButton text={id} label="Copy the id" />
        </span>
      }
    >
      <Answer asked={asked} command={eventShowLine(id, source)}>
        {(event) => <Shown event={event} />}
      </Answer>
    </Page>
  );
}

function NotThere({ id }: { readonly id: string }) {
  return (
    <Page title="Event" back={BACK}>
      <Empty title="Event not found" icon="search">
        <p>
          <code>
            <PlainText text={id} />
          </code>{" "}
          is in no outbox table. Retention may have deleted it, or the id is wrong.
        </p>
        <a href={eventsHref(id)}>Search for it as a key or a correlation id</a>
      </Empty>
    </Page>
  );
}

function Shown({ event }: { readonly event: ShownEvent }) {
  return (
    <>
      {event.isGone && (
        <div class="notice info" role="status">
          <Icon name="bin" />
          <div>
            <strong>Its row is gone from the outbox.</strong> This is what the relay recorded about it.
          </div>
        </div>
      )}
      <StandingBox event={event} />
      <div class="event-columns">
        <div class="stack">
          <AttemptsCard event={event} />
          <PayloadCard event={event} />
          <EditsCard event={event} />
          <HeadersCard event={event} />
        </div>
        <div class="stack">
          <Facts event={event} />
          {event.key !== null && <KeyCard event={event} />}
          {event.correlationId !== null && <CorrelationCard event={event} />}
          <AuditCard entries={event.audit} what="event" />
        </div>
      </div>
    </>
  );
}

const ICONS = { good: "check", info: "clock", warn: "park", bad: "dead", plain: "bin" } as const;

function StandingBox({ event }: { readonly event: ShownEvent }) {
  const { parkedBehind, pipeline, source, state } = event;
  const receiving = useLive().overview?.destinations.find((it) => it.pipelines.includes(pipeline ?? "")) ?? null;
  const { tone, what, advice, reason = event.reason } = standingOf(event, receiving);
  return (
    <div class={`notice ${tone}`}>
      <Icon name={ICONS[tone]} />
      <div>
        <strong>{what}</strong> {advice}
        {reason !== null && state !== "delivered" && (
          <p class="reason">
            <LongText text={reason} charsMax={REASON_CHARS} />
          </p>
        )}
      </div>
      {state === "parked" && parkedBehind !== null && (
        <a class="button plain" href={eventHref({ id: parkedBehind, source })}>
          Show the blocking event
        </a>
      )}
      {state === "pending" && receiving !== null && tone === "warn" && (
        <a class="button plain" href={destinationHref(receiving.destination)}>
          Show the destination
        </a>
      )}
    </div>
  );
}

function Facts({ event }: { readonly event: ShownEvent }) {
  const { attempts, correlationId, createdAt, hold, key, nextAttemptAt, pipelines, source, state } = event;
  return (
    <Card title="Facts">
      <KeyValues
        items={[
          ["Source", <a href={eventsHref(`source:${source}`)}>{source}</a>],
          [
            "Key",
            key === null ? (
              <span class="faint">none: it never waits for other events</span>
            ) : (
              <a class="mono" href={eventsHref(keyFilter(key, source))}>
                <PlainText text={key} />
              </a>
            ),
          ],
          [
            "Correlation id",
            correlationId === null ? null : (
              <a class="mono" href={correlationHref(correlationId)}>
                <PlainText text={correlationId} />
              </a>
            ),
          ],
          [
            "Trace",
            event.traceUrl === null ? null : (
              <a href={event.traceUrl} target="_blank" rel="noreferrer">
                Open the trace
              </a>
            ),
          ],
          [
            "Written",
            createdAt === null ? null : (
              <>
                <Ago at={createdAt} /> <span class="faint nowrap">{timeText(createdAt)}</span>
              </>
            ),
          ],
          ["Pipelines", pipelines.length === 0 ? null : pipelines.map((it) => <Badge key={it}>{it}</Badge>)],
          ["Failures", attempts],
          ["First failed", hold === null ? null : <Ago at={hold.firstFailedAt} />],
          ["Last failed", hold === null ? null : <Ago at={hold.lastFailedAt} />],
          ["Next attempt", state === "retrying" && nextAttemptAt !== null ? <Due at={nextAttemptAt} /> : null],
        ]}
      />
    </Card>
  );
}
