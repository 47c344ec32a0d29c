import type { EventTable } from "../../postgres/event-table.ts";
import { quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import { destinationOf } from "../../postgres/pipelines.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import { inGroup } from "../dead-letters/letter-group.ts";
import {
  type EventFilter,
  type EventState,
  headerMatches,
  holdsText,
  isId,
  ofReader,
  type PayloadFilter,
  payloadHolds,
  pipelineIn,
  timeConditions,
  typeMatches,
} from "./event-filter.ts";
import type { EventSource } from "./event-source.ts";
import { piecesOf, tokenOf } from "./payload-match.ts";

/** A table of the relay that names the wanted events, with the alias `d`. */
interface Driver {
  readonly table: string;
  readonly eventId: string;
  readonly conditions: readonly string[];
}

/**
 * One ordered way through a source, newest first. SQL fragments over `t`, a row of the source, and `d`, one of the
 * driver.
 */
export interface Listing {
  /** Distinguishes it from other listings of the same query, in a cursor. */
  readonly name: string;
  readonly source: EventSource;
  /** Null for a walk along the source itself. */
  readonly driver: Driver | null;
  readonly place: string;
  /** Distinguishes rows with the same position. */
  readonly tie: string;
  readonly tieType: string;
  /** Over `t`. */
  readonly conditions: readonly string[];
  /** Fields of the payload to match in memory: the conditions in SQL can only narrow the candidates. */
  readonly payload?: readonly PayloadFilter[] | undefined;
  /** Its rows only contain the search word, so they follow those that equal it. */
  readonly isLoose?: boolean;
}

/**
 * The listings that answer a filter. The relay's own records find failed events, last failure first; the source itself
 * finds all others. Empty when no row can match.
 */
export function listingsOf(source: EventSource, tables: RelayTables, filter: EventFilter): readonly Listing[] {
  const conditions = rowConditions(source.table, filter);
  const leadsThere = destinationCondition(source, filter.destination);
  if (conditions === null || leadsThere === null) return [];
  const state = filter.state ?? (filter.group === undefined ? undefined : "dead");
  if (state !== undefined && filter.group !== undefined && state !== "dead") return [];
  const listings = statesOf(state, filter).flatMap((it) =>
    it === null ? [wholeTable(source, "", [])] : stateListings(source, tables, it, filter),
  );
  const payload = filter.payload === undefined ? {} : { payload: filter.payload };
  return listings.map((listing) => ({
    ...listing,
    ...payload,
    conditions: [...listing.conditions, ...leadsThere, ...conditions],
  }));
}

/** Null when no row of this source can be meant. */
function destinationCondition({ pipelines, readBy }: EventSource, wanted: string | undefined): string[] | null {
  if (wanted === undefined) return [];
  const meant = pipelines.filter((pipeline) => destinationOf(pipeline) === wanted);
  if (meant.length === 0) return null;
  return readBy === null ? [] : [readBy(meant)];
}

/** Only failed, undelivered events have an error; null stands for any state. */
function statesOf(state: EventState | undefined, { error }: EventFilter): readonly (EventState | null)[] {
  if (error === undefined) return [state ?? null];
  if (state === undefined) return ["dead", "retrying"];
  return state === "dead" || state === "retrying" || state === "discarded" ? [state] : [];
}

/** One listing per meaning of a bare word, so that each can use its own index. */
export function wordListings(
  listing: Listing,
  word: string,
): { readonly byId: Listing[]; readonly others: Listing[]; readonly loose: Listing } {
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
    loose: { ...with_("part", holdsText(key, word), `not ${isExactly(listing, word)}`), isLoose: true },
  };
}

/** Matches the key, the correlation id or the id itself. */
function isExactly({ source: { table } }: Listing, word: string): string {
  const literal = quoteLiteral(word);
  const byId = isId(table.idType, word) ? [`${table.id} = ${literal}::${table.idType}`] : [];
  const named = [table.key, table.correlationId].map((column) => `coalesce(${column} = ${literal}, false)`);
  return `(${[...byId, ...named].join(" or ")})`;
}

/** Matches key or correlation id, in a source whose block filters cover both. */
export function exactWord(listing: Listing, word: string): Listing {
  return ofWord(listing, word, "word", (key, literal) => `${key} = ${literal}`);
}

/** The same in one listing where no index helps: each row is read once instead of three times. */
export function anyOfWord(listing: Listing, word: string): Listing {
  return ofWord(listing, word, "any", (key) => holdsText(key, word));
}

function ofWord(
  listing: Listing,
  word: string,
  name: string,
  ofKey: (key: string, literal: string) => string,
): Listing {
  const { correlationId, id, idType, key } = listing.source.table;
  const literal = quoteLiteral(word);
  const isOther = `(${ofKey(key, literal)} or ${correlationId} = ${literal})`;
  const notById = isId(idType, word) ? [`${id} <> ${literal}::${idType}`] : [];
  return { ...listing, name: `${listing.name} ${name}`, conditions: [...listing.conditions, isOther, ...notById] };
}

/** Null when no row of this table can match. */
function rowConditions(table: EventTable, filter: EventFilter): string[] | null {
  const { id, type, key, keyLike, correlationId, headers = [], payload = [], text } = filter;
  const conditions: string[] = [];
  const ids = id === undefined ? filter.ids : [id];
  if (ids !== undefined) {
    const possible = ids.filter((it) => isId(table.idType, it));
    if (possible.length === 0) return null;
    conditions.push(`${table.id} = any(${quoteArray(possible)}::text[]::${table.idType}[])`);
  }
  if (key !== undefined) conditions.push(`${table.key} = ${quoteLiteral(key)}`);
  if (keyLike !== undefined) conditions.push(typeMatches(table.key, keyLike));
  if (correlationId !== undefined) conditions.push(`${table.correlationId} = ${quoteLiteral(correlationId)}`);
  if (type !== undefined) conditions.push(typeMatches(table.eventType, type));
  conditions.push(...timeConditions(table.createdAt, filter));
  conditions.push(...headers.map((it) => headerMatches(table.headersJson, it)));
  for (const piece of [...(text === undefined ? [] : [text]), ...payload.flatMap(piecesOf)])
    conditions.push(payloadHolds(table.payloadBytes, piece));
  for (const token of payload.map(tokenOf)) {
    if (token !== null) conditions.push(`encode(${table.payloadBytes}, 'escape') ~ ${quoteLiteral(token)}`);
  }
  return conditions;
}

function stateListings(source: EventSource, tables: RelayTables, state: EventState, filter: EventFilter): Listing[] {
  const { delivered, givenUp, readBy, table, unread, waiting } = source;
  const isLog = unread !== null;
  const routed = readBy === null ? [] : [`not ${unroutedSql(source)}`];
  const id = `${table.id}::text`;
  const letterIs = (condition: string) =>
    `exists (select from ${tables.failedEvents} f where ${pipelineIn("f.pipeline", source)}
      and f.original_event_id = ${id} and ${condition})`;
  const isHeld = (condition: string) =>
    `exists (select from ${tables.holds} h where ${pipelineIn("h.pipeline", source)} and h.event_id = ${id} and ${condition})`;
  const discarded = letterIs("f.resolution = 'discarded'");
  const { error } = filter;
  const says = (column: string) => (error === undefined ? [] : [holdsText(column, error)]);
  switch (state) {
    case "delivered":
      return [wholeTable(source, "", [delivered, `not ${discarded}`, ...(isLog ? routed : [])])];
    case "unrouted": {
      if (readBy === null) return [];
      const waits = isLog ? [] : [waiting];
      return [wholeTable(source, "", [...waits, `not ${isHeld("true")}`, `not ${discarded}`, unroutedSql(source)])];
    }
    case "discarded":
      return [byLetters(source, tables, filter, ["d.resolution = 'discarded'", ...says("d.failure_reason")], [])];
    case "retrying":
      return [byHolds(source, tables, says("d.reason"))];
    case "dead":
      return [
        byLetters(
          source,
          tables,
          filter,
          ["d.resolved_at is null", ...says("d.failure_reason")],
          [givenUp === null ? isHeld("h.state = 'dead'") : `(${givenUp} or ${isHeld("h.state = 'dead'")})`],
        ),
        ...(givenUp === null || filter.group !== undefined || error !== undefined
          ? []
          : [
              wholeTable(source, "given up", [givenUp, `not ${discarded}`, `not ${letterIs("f.resolved_at is null")}`]),
            ]),
      ];
    default: {
      const isParked = parkedKey(source, tables);
      const conditions = [
        ...[waiting, `not ${isHeld("true")}`, state === "parked" ? isParked : `not ${isParked}`],
        ...(state === "parked" ? [] : routed),
      ];
      if (source.unread === null) return [wholeTable(source, "", conditions)];
      return [
        wholeTable(source, "", [source.unread, ...conditions]),
        byParked(source, tables, [`not ${source.unread}`, ...conditions]),
      ];
    }
  }
}

/** The condition that no pipeline of the source reads the row. */
export function unroutedSql({ pipelines, readBy }: EventSource): string {
  return readBy === null ? "false" : `(${readBy(pipelines)} is not true)`;
}

function parkedKey(source: EventSource, { holds }: RelayTables): string {
  return `exists (select from ${holds} h where ${ofReader("h.pipeline", source)} and h.event_key = ${source.table.key}
    and h.parks)`;
}

function wholeTable(source: EventSource, name: string, conditions: readonly string[]): Listing {
  const { order, table } = source;
  const place = { place: order, tie: table.id, tieType: table.idType };
  return { name: `${source.name}${name && ` ${name}`}`, source, driver: null, ...place, conditions };
}

/** Dead letters copy the most common search fields, and have indexes on them. */
function byLetters(
  source: EventSource,
  { failedEvents }: RelayTables,
  { correlationId, group, id, ids, key, keyLike }: EventFilter,
  which: readonly string[],
  conditions: readonly string[],
): Listing {
  const wanted = id === undefined ? ids : [id];
  const own = [
    pipelineIn("d.pipeline", source),
    ...which,
    ...(group === undefined ? [] : [inGroup("d.fingerprint", group)]),
    ...(key === undefined ? [] : [`d.event_key = ${quoteLiteral(key)}`]),
    ...(keyLike === undefined ? [] : [typeMatches("d.event_key", keyLike)]),
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

function byHolds(source: EventSource, { holds }: RelayTables, conditions: readonly string[]): Listing {
  const which = ["d.state <> 'dead'", ...conditions];
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

/** Several pipelines may have a record of one event; this keeps the newest, so that it is listed once. */
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
