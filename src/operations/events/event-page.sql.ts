import { quoteLiteral } from "../../postgres/identifiers.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import { idOfText, ofReader, pipelineIn } from "./event-filter.ts";
import { type Listing, unroutedSql } from "./event-listing.ts";
import type { EventSource } from "./event-source.ts";
import { isoSql } from "./event-time.ts";
import { MATCHED_BYTES_MAX } from "./payload-match.ts";

/** End of a page: the position as text, null where it is null, and the tie breaker for rows with the same position. */
export type PageEnd = readonly [place: string | null, tie: string];

interface PageRequest {
  readonly after: PageEnd | null;
  readonly rows: number;
  /**
   * Read this many rows and no more, and also return the first and last of them; null: read until there are enough
   * matches.
   */
  readonly window: number | null;
}

// No user table has columns with these names.
const PLACE = "outbox_relay_place";
const TIE = "outbox_relay_tie";
const NUMBER = "outbox_relay_number";

/**
 * A page of events, newest first, with what the relay knows of each. The page is cut first, so that holds and dead
 * letters are joined for its rows only. Each row also says whether it matches: the first and last rows of a window may
 * not.
 */
export function eventPageSql(listing: Listing, tables: RelayTables, request: PageRequest): string {
  const { source } = listing;
  const { table } = source;
  return `with page as materialized (${request.window === null ? directSql(listing, request) : windowSql(listing, request, request.window)})
select ${table.id}::text, ${table.eventType}, ${table.key}, ${table.correlationId}, ${isoSql(table.createdAt)},
  t.${PLACE}::text, t.${TIE}::text, ${request.window === null ? "true" : meant(listing)}, t.${NUMBER}, s.state, h.attempts, h.reason,
  ${isoSql("coalesce(h.next_at, case when s.state = 'pending' then v.scheduled_at end)")},
  case when s.state = 'parked' then b.event_id end, coalesce(h.pipeline, v.reader), ${WAIT}${payloadSql(listing)}
from page t
cross join lateral (select ${source.delivered} as delivered, ${source.givenUp ?? "false"} as given_up,
  ${source.reader ?? "null::text"} as reader, ${unroutedSql(source)} as unrouted, ${scheduledSql(source)} as scheduled_at) v
left join lateral (select h.* from ${tables.holds} h where ${pipelineIn("h.pipeline", source)}
  and h.event_id = ${table.id}::text order by h.last_failed_at desc limit 1) h on true
left join lateral (select h.event_id from ${tables.holds} h where ${ofReader("h.pipeline", { ...source, reader: source.reader && "v.reader" })}
  and h.event_key = ${table.key} and h.parks order by h.first_failed_at limit 1) b on true
left join lateral (select true as yes from ${tables.failedEvents} d where ${pipelineIn("d.pipeline", source)}
  and d.original_event_id = ${table.id}::text and d.resolution = 'discarded' limit 1) x on true
cross join lateral (select ${stateSql(source)} as state) s
left join ${tables.pipelines} p on p.name = coalesce(h.pipeline, v.reader)
order by t.${PLACE} desc, t.${TIE} desc`;
}

/** State of the row `t` with its hold `h`, the head `b` that parks its key, and `x` if an operator discarded it. */
function stateSql({ unread }: EventSource): string {
  // The readers of a log pass what none of them takes: that is no delivery.
  const isPassed = "h.state is null and v.unrouted and (v.delivered or b.event_id is null)";
  return `case when x.yes then 'discarded' ${unread === null ? "" : `when ${isPassed} then 'unrouted'`}
    when v.delivered then 'delivered' when h.state = 'dead' or v.given_up then 'dead'
    when h.state is not null then 'retrying' when b.event_id is not null then 'parked'
    when v.unrouted then 'unrouted' else 'pending' end`;
}

/** What the event waits for, besides those before it. */
const WAIT = `case when s.state not in ('pending', 'parked', 'retrying') then null
    when p.paused_at is not null then 'paused' when s.state = 'pending' and v.scheduled_at is not null then 'scheduled' end`;

function scheduledSql({ scheduledAt }: EventSource): string {
  return scheduledAt === null ? "null::timestamptz" : `case when ${scheduledAt} > now() then ${scheduledAt} end`;
}

/** Only where a filter needs fields of payloads. */
function payloadSql({ payload, source: { table } }: Listing): string {
  if (payload === undefined) return "";
  return `, substring(${table.payloadBytes} from 1 for ${MATCHED_BYTES_MAX}), octet_length(${table.payloadBytes})`;
}

function meant({ conditions }: Listing): string {
  return conditions.length === 0 ? "true" : `coalesce((${conditions.join("\n  and ")}), false)`;
}

/** Leaves the choice of the index to the planner. */
function directSql(listing: Listing, { after, rows }: PageRequest): string {
  const { conditions, driver, place, source, tie } = listing;
  const from =
    driver === null
      ? `${source.table.quotedName} t`
      : `${driver.table} d join ${source.table.quotedName} t on ${rowOfDriver(listing)}`;
  const where = [...(driver?.conditions ?? []), ...conditions, ...behind(listing, after)];
  return `select t.*, ${place} as ${PLACE}, ${tie} as ${TIE}, null as ${NUMBER} from ${from} ${whereSql(where)}
  order by ${place} desc, ${tie} desc limit ${rows}`;
}

/** Cuts the window before it checks any condition, so that its cost is known in advance. */
function windowSql(listing: Listing, { after, rows }: PageRequest, window: number): string {
  const { driver, place, source, tie } = listing;
  const [alias, from] = driver === null ? ["t", source.table.quotedName] : ["d", driver.table];
  const order = `${place} desc, ${tie} desc`;
  const cut = `(select ${alias}.*, ${place} as ${PLACE}, ${tie} as ${TIE}, row_number() over (order by ${order}) as ${NUMBER}
    from ${from} ${alias} ${whereSql([...(driver?.conditions ?? []), ...behind(listing, after)])}
    order by ${order} limit ${window}) ${alias}`;
  const row =
    driver === null
      ? `select t.* from ${cut}`
      : `select t.*, d.${PLACE}, d.${TIE}, d.${NUMBER} from ${cut}
  left join lateral (select t.* from ${source.table.quotedName} t where ${rowOfDriver(listing)}) t on true`;
  return `${row} where ${alias}.${NUMBER} in (1, ${window}) or ${meant(listing)} order by ${alias}.${NUMBER} limit ${rows + 2}`;
}

function rowOfDriver({ driver, source: { table } }: Listing): string {
  return `${table.id} = ${idOfText(table.idType, driver?.eventId ?? "null")}`;
}

/** Descending order starts with the nulls. */
function behind({ place, tie, tieType }: Listing, after: PageEnd | null): string[] {
  if (after === null) return [];
  const [at, last] = after;
  const ofTie = `${quoteLiteral(last)}::${tieType}`;
  if (at === null) return [`((${place} is null and ${tie} < ${ofTie}) or ${place} is not null)`];
  return [`(${place}, ${tie}) < (${quoteLiteral(at)}, ${ofTie})`];
}

function whereSql(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : `where ${conditions.join("\n    and ")}`;
}
