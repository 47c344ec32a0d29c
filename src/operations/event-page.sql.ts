import { quoteLiteral } from "../postgres/identifiers.ts";
import type { RelayTables } from "../postgres/relay-tables.ts";
import { pipelineIn } from "./event-filter.ts";
import type { EventSource } from "./event-source.ts";
import { isoSql } from "./event-time.ts";

/** Where a page ended: the order column's text, null where it is null, and the id. */
export type PageEnd = readonly [order: string | null, id: string];

interface PageRequest {
  readonly conditions: readonly string[];
  readonly after: PageEnd | null;
  readonly rows: number;
}

/**
 * A page of events, the newest first, with what the relay knows of each. The page is cut first; holds and dead letters
 * are looked up for its rows alone.
 */
export function eventPageSql(
  source: EventSource,
  tables: RelayTables,
  { conditions, after, rows }: PageRequest,
): string {
  const { table, order } = source;
  const where = [...conditions, ...(after === null ? [] : [behind(source, after)])];
  return `with page as materialized (
  select ${table.id}::text as id, ${table.eventType} as type, ${table.key} as key, ${table.correlationId} as correlation_id,
    ${isoSql(table.createdAt)} as created_at, ${order}::text as place, ${source.delivered} as delivered,
    ${source.givenUp ?? "false"} as given_up, row_number() over (order by ${order} desc, ${table.id} desc) as rank
  from ${table.quotedName} t ${where.length === 0 ? "" : `where ${where.join("\n    and ")}`}
  order by ${order} desc, ${table.id} desc limit ${rows})
select p.id, p.type, p.key, p.correlation_id, p.created_at, p.place, ${stateSql()}, h.attempts, h.reason,
  ${isoSql("h.next_at")}, case when not p.delivered and h.state is null then b.event_id end
from page p
left join lateral (select h.* from ${tables.holds} h where ${pipelineIn("h.pipeline", source)} and h.event_id = p.id
  order by h.last_failed_at desc limit 1) h on true
left join lateral (select h.event_id from ${tables.holds} h where ${pipelineIn("h.pipeline", source)}
  and h.event_key = p.key and h.parks order by h.first_failed_at limit 1) b on true
left join lateral (select true as yes from ${tables.failedEvents} d where ${pipelineIn("d.pipeline", source)}
  and d.original_event_id = p.id and d.resolution = 'discarded' limit 1) x on true
order by p.rank`;
}

/** Of the row `p` with its hold `h`, the head `b` that parks its key, and `x` where a person discarded it. */
function stateSql(): string {
  return `case when x.yes then 'discarded' when p.delivered then 'delivered'
    when h.state = 'dead' or p.given_up then 'dead' when h.state is not null then 'retrying'
    when b.event_id is not null then 'parked' else 'pending' end`;
}

/** Descending order begins with the nulls. */
function behind({ table, order }: EventSource, [place, id]: PageEnd): string {
  const ofId = `${quoteLiteral(id)}::${table.idType}`;
  if (place === null) return `((${order} is null and ${table.id} < ${ofId}) or ${order} is not null)`;
  return `(${order}, ${table.id}) < (${quoteLiteral(place)}, ${ofId})`;
}
