import { StateBadge } from "../../kit/badge.tsx";
import { Answer, Empty } from "../../kit/error-box.tsx";
import { Ago } from "../../kit/figures.tsx";
import { quotedValue } from "../../kit/filter/filter-text.ts";
import { Card } from "../../kit/page.tsx";
import { PlainText } from "../../kit/plain-text.tsx";
import type { EventPage, EventRow, ShownEvent } from "../../kit/types.ts";
import { useApi } from "../../kit/use-api.ts";
import { visibleText } from "../../kit/visible-text.ts";
import { rowKey } from "../events/tail-rows.ts";
import { correlationHref, eventHref, eventsHref, keyFilter } from "../links.ts";

const SHOWN = 8;
const TYPE_CHARS = 60;

/** The neighbours of the event within its key: the events it waits for and the events that wait for it. */
export function KeyCard({ event }: { readonly event: ShownEvent }) {
  const filter = keyFilter(event.key ?? "", event.source);
  const at = event.createdAt;
  const after = useApi<EventPage>(at === null ? null : "/events", { q: `${filter} since:${at}`, limit: SHOWN });
  const before = useApi<EventPage>("/events", { q: at === null ? filter : `${filter} until:${at}`, limit: SHOWN });
  const hasGap = after.data?.cursor != null;
  return (
    <Card title="Same key" actions={<a href={eventsHref(filter)}>Show all</a>}>
      <p class="faint relation">
        <code>
          <PlainText text={event.key ?? ""} />
        </code>
        {hasGap && ": newest first; events between these and this one are not shown"}
      </p>
      <Answer asked={before}>
        {(page) => (
          <>
            <Neighbours rows={merged([...(after.data?.events ?? []), ...page.events], event)} self={event} />
          </>
        )}
      </Answer>
    </Card>
  );
}

/** Other events with the same correlation id, across keys and sources. */
export function CorrelationCard({ event }: { readonly event: ShownEvent }) {
  const filter = `corr:${quotedValue(event.correlationId ?? "")}`;
  const asked = useApi<EventPage>("/events", { q: filter, limit: SHOWN + 4 });
  return (
    <Card title="Same correlation id" actions={<a href={correlationHref(event.correlationId ?? "")}>Timeline</a>}>
      <p class="faint relation">
        <code>
          <PlainText text={event.correlationId ?? ""} />
        </code>
      </p>
      <Answer asked={asked}>{(page) => <Neighbours rows={merged(page.events, event)} self={event} />}</Answer>
    </Card>
  );
}

function merged(rows: readonly EventRow[], self: EventRow): readonly EventRow[] {
  const all = new Map([...rows, self].map((row) => [rowKey(row), row]));
  return [...all.values()].sort((left, right) => ((left.createdAt ?? "") < (right.createdAt ?? "") ? 1 : -1));
}

function Neighbours({ rows, self }: { readonly rows: readonly EventRow[]; readonly self: EventRow }) {
  if (rows.length <= 1) return <Empty title="No other events" icon="dot" />;
  return (
    <ul class="neighbours">
      {rows.map((row) => {
        const isSelf = rowKey(row) === rowKey(self);
        return (
          <li key={rowKey(row)} class={isSelf ? "self" : ""}>
            <a href={eventHref(row)} aria-current={isSelf ? "true" : undefined} title={visibleText(row.id)}>
              <PlainText text={row.type} charsMax={TYPE_CHARS} />
            </a>
            <StateBadge state={row.state} />
            <span class="faint">
              <Ago at={row.createdAt} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}
