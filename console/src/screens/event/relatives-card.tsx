import { StateBadge } from "../../kit/badge.tsx";
import { Answer, Empty } from "../../kit/error-box.tsx";
import { Ago } from "../../kit/figures.tsx";
import { quotedValue } from "../../kit/filter/filter-text.ts";
import { Card } from "../../kit/page.tsx";
import type { EventPage, EventRow, ShownEvent } from "../../kit/types.ts";
import { useApi } from "../../kit/use-api.ts";
import { rowKey } from "../events/tail-rows.ts";
import { eventHref, eventsHref, keyFilter } from "../links.ts";

const SHOWN = 8;

/** Its neighbours within the key: order is kept there, so this is what it waits for and what waits for it. */
export function KeyCard({ event }: { readonly event: ShownEvent }) {
  const filter = keyFilter(event.key ?? "", event.source);
  const at = event.createdAt;
  const after = useApi<EventPage>(at === null ? null : "/events", { q: `${filter} since:${at}`, limit: SHOWN });
  const before = useApi<EventPage>("/events", { q: at === null ? filter : `${filter} until:${at}`, limit: SHOWN });
  const hasGap = after.data?.cursor != null;
  return (
    <Card title="Same key" actions={<a href={eventsHref(filter)}>Show all</a>}>
      <p class="faint relation">
        <code>{event.key}</code>
        {hasGap && ": the newest first, with more between them and this one"}
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

/** What else belongs to the same doing, over all keys and sources. */
export function CorrelationCard({ event }: { readonly event: ShownEvent }) {
  const filter = `corr:${quotedValue(event.correlationId ?? "")}`;
  const asked = useApi<EventPage>("/events", { q: filter, limit: SHOWN + 4 });
  return (
    <Card title="Same correlation id" actions={<a href={eventsHref(filter)}>Show all</a>}>
      <p class="faint relation">
        <code>{event.correlationId}</code>
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
  if (rows.length <= 1) return <Empty title="It is the only one" icon="dot" />;
  return (
    <ul class="neighbours">
      {rows.map((row) => {
        const isSelf = rowKey(row) === rowKey(self);
        return (
          <li key={rowKey(row)} class={isSelf ? "self" : ""}>
            <a href={eventHref(row)} aria-current={isSelf ? "true" : undefined} title={row.id}>
              {row.type}
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
