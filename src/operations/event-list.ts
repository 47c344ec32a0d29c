import { isRelayError, RelayError } from "../core/errors.ts";
import type { Row } from "../postgres/session.ts";
import { statement } from "../postgres/transaction.ts";
import { type EventFilter, type EventState, eventConditions } from "./event-filter.ts";
import { eventPageSql, type PageEnd } from "./event-page.sql.ts";
import {
  type BrokenEventSource,
  type EventSource,
  eventSources,
  type OperationTarget,
  operationReadSettings,
} from "./event-source.ts";

export interface ListedEvent {
  readonly source: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly createdAt: string | null;
  readonly state: EventState;
  /** Failures so far, of one that has failed. */
  readonly attempts: number | null;
  readonly reason: string | null;
  readonly nextAttemptAt: string | null;
  /** The event that keeps this one waiting. */
  readonly parkedBehind: string | null;
}

export interface EventPage {
  readonly events: readonly ListedEvent[];
  /** To go on behind the last one; null at the end. */
  readonly cursor: string | null;
  readonly broken: readonly BrokenEventSource[];
}

/** How far each source has been shown; null: to its end. */
type Progress = Readonly<Record<string, PageEnd | null>>;

export const LIST_ROWS_MAX = 500;
const LIST_ROWS = 50;

/** The newest events first, over all sources. Bounded in rows and time, whatever the tables hold. */
export async function listEvents(
  target: OperationTarget,
  filter: EventFilter,
  { limit = LIST_ROWS, cursor }: { readonly limit?: number; readonly cursor?: string | undefined } = {},
): Promise<EventPage> {
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  const before = cursor === undefined ? {} : readCursor(cursor);
  const { usable, broken } = await eventSources(target, filter.source);
  requireSource(filter.source, usable.length + broken.length);
  const heads: { source: EventSource; page: readonly Placed[] }[] = [];
  const slow: BrokenEventSource[] = [];
  for (const source of usable.filter(({ name }) => before[name] !== null)) {
    const page = await readPage(target, source, filter, before[source.name] ?? null, rows + 1);
    if (page === null) slow.push({ source: source.name, reason: tooSlow(source) });
    heads.push({ source, page: page ?? [] });
  }
  const progress: Record<string, PageEnd | null> = { ...before };
  const events: ListedEvent[] = [];
  const shown = new Map(heads.map(({ source }) => [source.name, 0]));
  while (events.length < rows) {
    const next = newestHead(heads, shown);
    if (next === null) break;
    events.push(next.placed.event);
    shown.set(next.name, (shown.get(next.name) ?? 0) + 1);
    progress[next.name] = next.placed.end;
  }
  for (const { source, page } of heads) if (shown.get(source.name) === page.length) progress[source.name] = null;
  const isEnd = usable.every(({ name }) => progress[name] === null);
  return { events, cursor: isEnd ? null : writeCursor(progress), broken: [...broken, ...slow] };
}

function requireSource(wanted: string | undefined, found: number): void {
  if (wanted === undefined || found > 0) return;
  throw new RelayError(
    "CONFIG_INVALID",
    `${JSON.stringify(wanted)} is no source that the relay has read; write schema.table`,
  );
}

interface Placed {
  readonly event: ListedEvent;
  readonly end: PageEnd;
}

/** Null when it could not be read in time. */
async function readPage(
  { database }: OperationTarget,
  source: EventSource,
  filter: EventFilter,
  after: PageEnd | null,
  rows: number,
): Promise<readonly Placed[] | null> {
  const conditions = eventConditions(source, database.tables, filter);
  if (conditions === null) return [];
  const text = eventPageSql(source, database.tables, { conditions, after, rows });
  try {
    const found = await statement(database.pool, operationReadSettings(database, "listing events", source.name), text);
    return found.map((row) => placedOf(source.name, row));
  } catch (error) {
    if (isRelayError(error, "DATABASE_BUSY")) return null;
    throw error;
  }
}

/** Rather no answer than one that costs the database its breath. */
function tooSlow({ order }: EventSource): string {
  const column = order.replace(/^t\./, "");
  return `it took too long: ask for a state, a key or an id, or give ${column} an index`;
}

function placedOf(source: string, row: Row): Placed {
  const [id, type, key, correlationId, createdAt, place, state, attempts, reason, nextAt, parkedBehind] = row;
  const event: ListedEvent = {
    source,
    id: id ?? "",
    type: type ?? "",
    key: key ?? null,
    correlationId: correlationId ?? null,
    createdAt: createdAt ?? null,
    state: state as EventState,
    attempts: attempts == null ? null : Number(attempts),
    reason: reason ?? null,
    nextAttemptAt: nextAt ?? null,
    parkedBehind: parkedBehind ?? null,
  };
  return { event, end: [place ?? null, event.id] };
}

/** Each source keeps its own order; among them the newest goes first, and what has no time goes last. */
function newestHead(
  heads: readonly { readonly source: EventSource; readonly page: readonly Placed[] }[],
  shown: ReadonlyMap<string, number>,
): { name: string; placed: Placed } | null {
  let newest: { name: string; placed: Placed } | null = null;
  for (const { source, page } of heads) {
    const placed = page[shown.get(source.name) ?? 0];
    if (placed === undefined) continue;
    const isNewer = (placed.event.createdAt ?? "") > (newest?.placed.event.createdAt ?? "");
    if (newest === null || isNewer) newest = { name: source.name, placed };
  }
  return newest;
}

function writeCursor(progress: Progress): string {
  return Buffer.from(JSON.stringify(progress)).toString("base64url");
}

function readCursor(cursor: string): Progress {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (isProgress(value)) return value;
  } catch {
    // Falls through to the one message for all that is no cursor.
  }
  throw new RelayError("CONFIG_INVALID", "The cursor is not one that a list gave out");
}

function isProgress(value: unknown): value is Progress {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((end) => end === null || isPageEnd(end));
}

function isPageEnd(end: unknown): end is PageEnd {
  if (!Array.isArray(end) || end.length !== 2) return false;
  const [place, id] = end as unknown[];
  return (place === null || typeof place === "string") && typeof id === "string";
}
