import { RelayError } from "../core/errors.ts";
import { type Progress, readCursor, writeCursor } from "./event-cursor.ts";
import type { EventFilter } from "./event-filter.ts";
import type { PageEnd } from "./event-page.sql.ts";
import type { ListedEvent, Placed, ReadPage } from "./event-read.ts";
import { readDirectly, type Search, search, searchesOf } from "./event-search.ts";
import { type BrokenEventSource, eventSources, type OperationTarget } from "./event-source.ts";

export type { ListedEvent } from "./event-read.ts";

export interface EventPage {
  readonly events: readonly ListedEvent[];
  /** To go on behind the last one; null at the end. */
  readonly cursor: string | null;
  readonly broken: readonly BrokenEventSource[];
  /** How far back a search came that had to look at row after row. */
  readonly covered: readonly Covered[];
}

interface Covered {
  readonly source: string;
  readonly upTo: string | null;
  readonly isComplete: boolean;
  /** The time of the newest row, of a glance. */
  readonly newest?: string | null;
}

interface ListOptions {
  readonly limit?: number;
  readonly cursor?: string | undefined;
  /** Look at the newest so many rows of each source and no further: for whoever looks again and again. */
  readonly glanceRows?: number;
}

export const LIST_ROWS_MAX = 500;
const LIST_ROWS = 50;
/** For one source, and for all of them together. */
const SOURCE_MS = 2_000;
const ALL_MS = 4_000;

/** The newest events first, over all sources. Bounded in rows and time, whatever the tables hold. */
export async function listEvents(
  target: OperationTarget,
  filter: EventFilter,
  { limit = LIST_ROWS, cursor, glanceRows }: ListOptions = {},
): Promise<EventPage> {
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  const before = cursor === undefined ? {} : readCursor(cursor);
  const { usable, broken } = await eventSources(target, filter.source);
  requireSource(filter.source, usable.length + broken.length);
  const searches: Search[] = [];
  for (const source of usable) {
    searches.push(
      ...(await searchesOf(target, source, filter, { before, rows: rows + 1, isGlance: glanceRows !== undefined })),
    );
  }
  const bounds = { rows: rows + 1, glanceRows: glanceRows ?? null };
  const heads = await readAll(target, searches, before, bounds, filter.since);
  const { events, progress } = merged(heads, before, rows);
  const stuck = heads.filter(({ read }) => read.isStuck);
  const isEnd = heads.every(({ name }) => progress[name] === null);
  return {
    events,
    cursor: isEnd ? null : writeCursor(progress),
    broken: [...broken, ...stuck.map(({ source, order }) => ({ source, reason: tooSlow(order) }))],
    covered: coveredBy(heads, progress),
  };
}

function requireSource(wanted: string | undefined, found: number): void {
  if (wanted === undefined || found > 0) return;
  throw new RelayError(
    "CONFIG_INVALID",
    `${JSON.stringify(wanted)} is no source that the relay has read; write schema.table`,
  );
}

/** Of each source that was searched; what was not read to its end counts. */
function coveredBy(heads: readonly Head[], progress: Progress): readonly Covered[] {
  const searched = heads.filter(({ read }) => read.isSearch && !read.isStuck);
  return [...Map.groupBy(searched, ({ source }) => source)].map(([source, all]) => {
    const open = all.filter(({ name }) => progress[name] !== null);
    const { newest, upTo } = (open[0] ?? all[0])?.read ?? { upTo: null };
    return { source, upTo, isComplete: open.length === 0, ...(newest === undefined ? {} : { newest }) };
  });
}

interface Head {
  readonly name: string;
  readonly source: string;
  readonly order: string;
  readonly read: ReadPage;
}

/** What an index answers goes first; what is left of the time is shared among the searches. */
async function readAll(
  target: OperationTarget,
  searches: readonly Search[],
  before: Progress,
  { glanceRows, rows }: { readonly rows: number; readonly glanceRows: number | null },
  since: Date | undefined,
): Promise<readonly Head[]> {
  const endMs = performance.now() + ALL_MS;
  const heads: Head[] = [];
  const slow: Search[] = [];
  const add = ({ listing: { name, source } }: Search, read: ReadPage) =>
    heads.push({ name, source: source.name, order: source.order, read });
  for (const it of searches) {
    const after = before[it.listing.name];
    if (after === null) continue;
    const bounds = { rows, deadlineMs: endMs, glanceRows };
    const isDirect = it.way === "direct" && glanceRows === null;
    const read = isDirect ? await readDirectly(target, it.listing, after ?? null, bounds) : null;
    if (read === null) slow.push(it);
    else add(it, read);
  }
  for (const [index, it] of slow.entries()) {
    const leftMs = endMs - performance.now();
    const deadlineMs = performance.now() + Math.min(SOURCE_MS, leftMs / (slow.length - index));
    add(it, await search(target, it, before[it.listing.name] ?? null, { rows, deadlineMs, glanceRows }, since));
  }
  return heads;
}

/** Each listing keeps its own order; among them the newest goes first, and what has no time goes last. */
function merged(heads: readonly Head[], before: Progress, rows: number) {
  const progress: Record<string, PageEnd | null> = { ...before };
  const shown = new Map(heads.map(({ name }) => [name, 0]));
  const events: ListedEvent[] = [];
  while (events.length < rows) {
    const next = newestHead(heads, shown);
    if (next === null) break;
    events.push(next.placed.event);
    shown.set(next.name, (shown.get(next.name) ?? 0) + 1);
  }
  for (const { name, read } of heads) {
    const end = endOf(read, shown.get(name) ?? 0);
    if (end !== undefined) progress[name] = end;
  }
  return { events, progress };
}

/** Undefined where it stays where it was. */
function endOf({ end, page }: ReadPage, shown: number): PageEnd | null | undefined {
  const next = page[shown];
  if (next === undefined) return end;
  const last = page[shown - 1];
  const isSameLook = last !== undefined && last.from === next.from;
  return isSameLook ? last.end : (next.from ?? last?.end);
}

function newestHead(
  heads: readonly Head[],
  shown: ReadonlyMap<string, number>,
): { name: string; placed: Placed } | null {
  let newest: { name: string; placed: Placed } | null = null;
  for (const { name, read } of heads) {
    const placed = read.page[shown.get(name) ?? 0];
    if (placed === undefined) continue;
    const isNewer = (placed.event.createdAt ?? "") > (newest?.placed.event.createdAt ?? "");
    if (newest === null || isNewer) newest = { name, placed };
  }
  return newest;
}

/** Rather no answer than one that costs the database its breath. */
function tooSlow(order: string): string {
  const column = order.replace(/^t\./, "");
  return `it took too long: ask for a state, a key or an id, or give ${column} an index`;
}
