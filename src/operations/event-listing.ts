import type { EventTable } from "../postgres/event-table.ts";
import { quoteArray, quoteLiteral } from "../postgres/identifiers.ts";
import type { RelayTables } from "../postgres/relay-tables.ts";
import {
  type EventFilter,
  type EventState,
  isId,
  payloadHolds,
  pipelineIn,
  timeConditions,
  typeMatches,
} from "./event-filter.ts";
import type { EventSource } from "./event-source.ts";

/** A table of the relay's that names the events in question, under the alias `d`. */
interface Driver {
  readonly table: string;
  readonly eventId: string;
  readonly conditions: readonly string[];
}

/** One way through one source, from the newest on. Fragments over `t`, a row of the source, and `d`, one of the driver. */
export interface Listing {
  /** Tells it apart from the others of one question, in a cursor. */
  readonly name: string;
  readonly source: EventSource;
  /** Null where the source itself is walked along. */
  readonly driver: Driver | null;
  readonly place: string;
  /** What tells rows of one place apart. */
  readonly tie: string;
  readonly tieType: string;
  /** Over `t`. */
  readonly conditions: readonly string[];
}

/**
 * Where to look for what is asked. What failed is found by what the relay wrote down of it, the last failure first;
 * everything else by the source itself. None where no row can be meant.
 */
export function listingsOf(source: EventSource, tables: RelayTables, filter: EventFilter): readonly Listing[] {
  const conditions = rowConditions(source.table, filter);
  if (conditions === null) return [];
  const state = filter.state ?? (filter.group === undefined ? undefined : "dead");
  if (state !== undefined && filter.group !== undefined && state !== "dead") return [];
  const listings = state === undefined ? [wholeTable(source, "", [])] : stateListings(source, tables, state, filter);
  return listings.map((listing) => ({ ...listing, conditions: [...listing.conditions, ...conditions] }));
}

/** A bare word by one of its meanings each, so that each can be looked up by an index of its own. */
export function wordListings(listing: Listing, word: string): { readonly byId: Listing[]; readonly others: Listing[] } {
  const { correlationId, id, idType, key } = listing.source.table;
  const literal = quoteLiteral(word);
  const isIt = `${id} = ${literal}::${idType}`;
  const with_ = (name: string, ...more: string[]): Listing => ({
    ...listing,
    name: `${listing.name} ${name}`,
    conditions: [...listing.conditions, ...more],
  });
  const notById = isId(idType, word) ? [`not ${isIt}`] : [];
  return {
    byId: isId(idType, word) ? [with_("id", isIt)] : [],
    others: [
      with_("key", `${key} = ${literal}`, ...notById),
      with_("correlation", `${correlationId} = ${literal}`, `${key} is distinct from ${literal}`, ...notById),
    ],
  };
}

/** The same where no index helps: one look at each row instead of two. */
export function anyOfWord(listing: Listing, word: string): Listing {
  const { correlationId, id, idType, key } = listing.source.table;
  const literal = quoteLiteral(word);
  const isOther = `(${key} = ${literal} or ${correlationId} = ${literal})`;
  const notById = isId(idType, word) ? [`${id} <> ${literal}::${idType}`] : [];
  return { ...listing, name: `${listing.name} word`, conditions: [...listing.conditions, isOther, ...notById] };
}

/** Null when no row of this table can meet them. */
function rowConditions(table: EventTable, filter: EventFilter): string[] | null {
  const { id, type, key, correlationId, text } = filter;
  const conditions: string[] = [];
  const ids = id === undefined ? filter.ids : [id];
  if (ids !== undefined) {
    const possible = ids.filter((it) => isId(table.idType, it));
    if (possible.length === 0) return null;
    conditions.push(`${table.id} = any(${quoteArray(possible)}::text[]::${table.idType}[])`);
  }
  if (key !== undefined) conditions.push(`${table.key} = ${quoteLiteral(key)}`);
  if (correlationId !== undefined) conditions.push(`${table.correlationId} = ${quoteLiteral(correlationId)}`);
  if (type !== undefined) conditions.push(typeMatches(table.eventType, type));
  conditions.push(...timeConditions(table.createdAt, filter));
  if (text !== undefined) conditions.push(payloadHolds(table.payloadBytes, text));
  return conditions;
}

function stateListings(source: EventSource, tables: RelayTables, state: EventState, filter: EventFilter): Listing[] {
  const { delivered, givenUp, table, waiting } = source;
  const id = `${table.id}::text`;
  const letterIs = (condition: string) =>
    `exists (select from ${tables.failedEvents} f where ${pipelineIn("f.pipeline", source)}
      and f.original_event_id = ${id} and ${condition})`;
  const isHeld = (condition: string) =>
    `exists (select from ${tables.holds} h where ${pipelineIn("h.pipeline", source)} and h.event_id = ${id} and ${condition})`;
  const discarded = letterIs("f.resolution = 'discarded'");
  switch (state) {
    case "delivered":
      return [wholeTable(source, "", [delivered, `not ${discarded}`])];
    case "discarded":
      return [byLetters(source, tables, filter, ["d.resolution = 'discarded'"], [])];
    case "retrying":
      return [byHolds(source, tables)];
    case "dead":
      return [
        byLetters(
          source,
          tables,
          filter,
          ["d.resolved_at is null"],
          [givenUp === null ? isHeld("h.state = 'dead'") : `(${givenUp} or ${isHeld("h.state = 'dead'")})`],
        ),
        ...(givenUp === null || filter.group !== undefined
          ? []
          : [
              wholeTable(source, "given up", [givenUp, `not ${discarded}`, `not ${letterIs("f.resolved_at is null")}`]),
            ]),
      ];
    default: {
      const isParked = parkedKey(source, tables);
      const conditions = [waiting, `not ${isHeld("true")}`, state === "parked" ? isParked : `not ${isParked}`];
      if (source.unread === null) return [wholeTable(source, "", conditions)];
      return [
        wholeTable(source, "", [source.unread, ...conditions]),
        byParked(source, tables, [`not ${source.unread}`, ...conditions]),
      ];
    }
  }
}

function parkedKey(source: EventSource, { holds }: RelayTables): string {
  return `exists (select from ${holds} h where ${pipelineIn("h.pipeline", source)} and h.event_key = ${source.table.key}
    and h.parks)`;
}

function wholeTable(source: EventSource, name: string, conditions: readonly string[]): Listing {
  const { order, table } = source;
  const place = { place: order, tie: table.id, tieType: table.idType };
  return { name: `${source.name}${name && ` ${name}`}`, source, driver: null, ...place, conditions };
}

/** Letters hold a copy of what is asked for most: their own indexes find it. */
function byLetters(
  source: EventSource,
  { failedEvents }: RelayTables,
  { correlationId, group, id, ids, key }: EventFilter,
  which: readonly string[],
  conditions: readonly string[],
): Listing {
  const wanted = id === undefined ? ids : [id];
  const own = [
    pipelineIn("d.pipeline", source),
    ...which,
    ...(group === undefined ? [] : [`d.fingerprint = ${quoteLiteral(group)}`]),
    ...(key === undefined ? [] : [`d.event_key = ${quoteLiteral(key)}`]),
    ...(correlationId === undefined ? [] : [`d.correlation_id = ${quoteLiteral(correlationId)}`]),
    ...(wanted === undefined ? [] : [`d.original_event_id = any(${quoteArray(wanted.map(plainText))}::text[])`]),
  ];
  const once = newestOnly(source, failedEvents, "original_event_id", which);
  return {
    name: `${source.name} letters`,
    source,
    driver: { table: failedEvents, eventId: "d.original_event_id", conditions: [...own, ...once] },
    ...{ place: "d.last_failed_at", tie: "d.id", tieType: "uuid" },
    conditions,
  };
}

function byHolds(source: EventSource, { holds }: RelayTables): Listing {
  const which = ["d.state <> 'dead'"];
  const once = newestOnly(source, holds, "event_id", which);
  return {
    name: `${source.name} holds`,
    source,
    driver: { table: holds, eventId: "d.event_id", conditions: [pipelineIn("d.pipeline", source), ...which, ...once] },
    ...{ place: "d.last_failed_at", tie: "d.event_id", tieType: "text" },
    conditions: [],
  };
}

function byParked(source: EventSource, { parked }: RelayTables, conditions: readonly string[]): Listing {
  const once = newestOnly(source, parked, "event_id", []);
  return {
    name: `${source.name} parked`,
    source,
    driver: { table: parked, eventId: "d.event_id", conditions: [pipelineIn("d.pipeline", source), ...once] },
    ...{ place: "d.place", tie: "d.event_id", tieType: "text" },
    conditions,
  };
}

/** Several pipelines may each have something to say of one event, and it is listed once. */
function newestOnly(source: EventSource, table: string, eventId: string, which: readonly string[]): string[] {
  if (source.pipelines.length === 1) return [];
  const same = [
    `o.${eventId} = d.${eventId}`,
    pipelineIn("o.pipeline", source),
    ...which.map((it) => it.replace("d.", "o.")),
  ];
  return [`not exists (select from ${table} o where ${same.join(" and ")} and o.pipeline > d.pipeline)`];
}

function plainText(text: string): string {
  return text.replaceAll("\0", "");
}
