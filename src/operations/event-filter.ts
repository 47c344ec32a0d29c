import { quoteArray, quoteLiteral } from "../postgres/identifiers.ts";
import type { RelayTables } from "../postgres/relay-tables.ts";
import type { EventSource } from "./event-source.ts";

export const EVENT_STATES = ["pending", "retrying", "parked", "dead", "delivered", "discarded"] as const;

/**
 * `pending` waits for its turn, `retrying` has failed and is tried again, `parked` waits behind one that failed, `dead`
 * waits for a person, `discarded` was given up by one.
 */
export type EventState = (typeof EVENT_STATES)[number];

export interface EventFilter {
  readonly source?: string | undefined;
  /** `*` stands for any run of characters. */
  readonly type?: string | undefined;
  readonly key?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly id?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  readonly state?: EventState | undefined;
  /** By the time of creation: from, inclusive, and to, exclusive. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
}

/** Holds that one question looks at, at most. */
const HOLDS_MAX = 10_000;

/** The conditions over `t`; null when no row of this source can meet them. */
export function eventConditions(source: EventSource, tables: RelayTables, filter: EventFilter): string[] | null {
  const { table } = source;
  const { id, type, key, correlationId, since, until, state } = filter;
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
  if (since !== undefined) conditions.push(`${table.createdAt} >= ${quoteLiteral(since.toISOString())}`);
  if (until !== undefined) conditions.push(`${table.createdAt} < ${quoteLiteral(until.toISOString())}`);
  if (state !== undefined) conditions.push(...stateConditions(source, tables, state));
  return conditions;
}

/** Whether the text can be an id of that type: a wrong one finds nothing, and is no error. */
export function isId(idType: string, text: string): boolean {
  if (text.includes("\0")) return false;
  if (idType === "uuid") return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);
  const bits = { smallint: 15n, integer: 31n, bigint: 63n }[idType];
  if (bits === undefined) return true;
  return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(Number(bits) + 1, BigInt(text)) === BigInt(text);
}

export function typeMatches(column: string, pattern: string): string {
  if (!pattern.includes("*")) return `${column} = ${quoteLiteral(pattern)}`;
  const like = pattern.replace(/[\\%_]/g, "\\$&").replaceAll("*", "%");
  return `${column} like ${quoteLiteral(like)}`;
}

export function pipelineIn(column: string, { pipelines }: EventSource): string {
  return `${column} = any(${quoteArray(pipelines)}::text[])`;
}

function stateConditions(source: EventSource, tables: RelayTables, state: EventState): string[] {
  const { table, waiting, delivered, givenUp } = source;
  const held = (condition: string) =>
    `${table.id} = any(array(select h.event_id::${table.idType} from ${tables.holds} h
      where ${pipelineIn("h.pipeline", source)} and ${condition} limit ${HOLDS_MAX}))`;
  const discarded = `${table.id} = any(array(select d.original_event_id::${table.idType} from ${tables.failedEvents} d
      where ${pipelineIn("d.pipeline", source)} and d.resolution = 'discarded' limit ${HOLDS_MAX}))`;
  switch (state) {
    case "delivered":
      return [delivered, `not ${discarded}`];
    case "discarded":
      return [discarded];
    case "retrying":
      return [held("h.state <> 'dead'")];
    case "dead":
      return [
        givenUp === null ? held("h.state = 'dead'") : `(${givenUp} or ${held("h.state = 'dead'")})`,
        `not ${discarded}`,
      ];
    case "parked":
      return [waiting, notHeld(source, tables), `${parkedKeys(source, tables, "in")}`];
    default:
      return [waiting, notHeld(source, tables), `(${table.key} is null or ${parkedKeys(source, tables, "not in")})`];
  }
}

function notHeld(source: EventSource, { holds }: RelayTables): string {
  return `${source.table.id}::text collate "C" not in (
    select h.event_id from ${holds} h where ${pipelineIn("h.pipeline", source)})`;
}

function parkedKeys(source: EventSource, { holds }: RelayTables, which: "in" | "not in"): string {
  return `${source.table.key} collate "C" ${which} (select h.event_key from ${holds} h
    where ${pipelineIn("h.pipeline", source)} and h.parks and h.event_key is not null)`;
}
