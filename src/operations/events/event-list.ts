import { RelayError } from "../../core/errors.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { destinationOf } from "../../postgres/pipelines.ts";
import { statement } from "../../postgres/transaction.ts";
import { withWholeGroup } from "../dead-letters/letter-group.ts";
import { filterText } from "../filter/filter-language.ts";
import type { EventFilter } from "./event-filter.ts";
import type { PageEnd } from "./event-page.sql.ts";
import { type ListedEvent, type Placed, type ReadPage, wrongCursor } from "./event-read.ts";
import { readDirectly, type Search, search, searchesOf } from "./event-search.ts";
import {
  type BrokenEventSource,
  type EventSource,
  eventSources,
  type OperationTarget,
  operationReadSettings,
} from "./event-source.ts";

export type { ListedEvent } from "./event-read.ts";

/** One page of events. */
export interface EventPage {
  readonly events: readonly ListedEvent[];
  /** Cursor of the next page; null at the end. */
  readonly cursor: string | null;
  readonly broken: readonly BrokenEventSource[];
  /** How far back a search without an index came. */
  readonly covered: readonly Covered[];
}

interface Covered {
  readonly source: string;
  readonly upTo: string | null;
  readonly isComplete: boolean;
  /** Number of the newest rows that were searched, over all pages so far; null when not counted. */
  readonly looked: number | null;
  /** Estimated number of rows of the source; null when unknown. */
  readonly total: number | null;
  /** Time of the newest row, when only the newest rows are read. */
  readonly newest?: string | null;
}

interface ListOptions {
  readonly limit?: number;
  readonly cursor?: string | undefined;
  /** Read only this many of the newest rows of each source: for clients that poll. */
  readonly glanceRows?: number;
}

/** The most events on a page. */
export const LIST_ROWS_MAX = 500;
const LIST_ROWS = 50;
/** Time limits for one source, and for all of them together. */
const SOURCE_MS = 2_000;
const ALL_MS = 4_000;

/** The newest events first, across all sources. Bounded in rows and time, whatever the tables contain. */
export async function listEvents(
  target: OperationTarget,
  wanted: EventFilter,
  { limit = LIST_ROWS, cursor, glanceRows }: ListOptions = {},
): Promise<EventPage> {
  const filter = await withWholeGroup(target.database, wanted);
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  const from = cursor === undefined ? FIRST_PAGE : readCursor(cursor);
  const before = from.progress;
  const { usable, broken } = await eventSources(target, filter.source);
  requireSource(filter.source, usable.length + broken.length);
  if (broken.length === 0) requireDestination(filter.destination, usable);
  const searches: Search[] = [];
  for (const source of usable) {
    searches.push(
      ...(await searchesOf(target, source, filter, { before, rows: rows + 1, isGlance: glanceRows !== undefined })),
    );
  }
  const bounds = { rows: rows + 1, glanceRows: glanceRows ?? null };
  const heads = await readAll(target, searches, before, bounds, filter.since);
  const { events, looked, progress } = merged(heads, from, rows);
  const stuck = heads.filter(({ read }) => read.isStuck);
  const isEnd = heads.every(({ name }) => progress[name] === null);
  return {
    events,
    cursor: isEnd ? null : writeCursor({ progress, looked }),
    broken: [...broken, ...stuck.map(({ source, order }) => ({ source, reason: tooSlow(order) }))],
    covered: await coveredBy(target, heads, { progress, looked }),
  };
}

const FEW = 5;

/**
 * A filter that searches payloads for the bare word too; null without a word, or when enough events matched without.
 */
export function alsoInPayloads(filter: EventFilter, { events }: Pick<EventPage, "events">): string | null {
  const { text, word, ...others } = filter;
  if (word === undefined || text !== undefined || events.length > FEW) return null;
  return filterText({ ...others, text: word });
}

function requireSource(wanted: string | undefined, found: number): void {
  if (wanted === undefined || found > 0) return;
  throw new RelayError(
    "CONFIG_INVALID",
    `${JSON.stringify(wanted)} is not a source of this relay: write it as schema.table`,
  );
}

/** A misspelt name would look like a destination for which nothing waits. */
function requireDestination(wanted: string | undefined, sources: readonly EventSource[]): void {
  const known = new Set(sources.flatMap(({ pipelines }) => pipelines.map(destinationOf)));
  if (wanted === undefined || known.has(wanted)) return;
  const names = [...known].sort().join(", ") || "none yet";
  throw new RelayError(
    "CONFIG_INVALID",
    `No pipeline leads to the destination ${JSON.stringify(wanted)}. Destinations: ${names}.`,
  );
}

/** Coverage of each source that was searched but not read to its end. */
async function coveredBy(
  target: OperationTarget,
  heads: readonly Head[],
  { looked, progress }: ListPlace,
): Promise<readonly Covered[]> {
  const searched = heads.filter(({ read }) => read.isSearch && !read.isStuck);
  const covered: Covered[] = [];
  for (const [source, all] of Map.groupBy(searched, (head) => head.source)) {
    const open = all.filter(({ name }) => progress[name] !== null);
    const head = open.find(({ isWhole }) => isWhole) ?? open[0] ?? all[0];
    const { newest, upTo } = head?.read ?? { upTo: null };
    const isCounted = open.length > 0 && head !== undefined && head.isWhole && newest === undefined;
    covered.push({
      source,
      upTo,
      isComplete: open.length === 0,
      ...(isCounted ? await share(target, head, looked[head.name]) : { looked: null, total: null }),
      ...(newest === undefined ? {} : { newest }),
    });
  }
  return covered;
}

/** Estimates below the number of rows already read are wrong, and dropped. */
async function share(target: OperationTarget, { table }: Head, looked = 0) {
  const total = await estimatedRows(target, table);
  return { looked, total: total !== null && total >= looked ? total : null };
}

interface Head {
  readonly name: string;
  readonly source: string;
  readonly table: string;
  readonly order: string;
  /** True for a search of the source itself, false for one of the relay's own records. */
  readonly isWhole: boolean;
  readonly isLoose: boolean;
  readonly read: ReadPage;
}

/** Listings with an index go first; the searches share the remaining time. */
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
  const add = ({ listing: { driver, isLoose = false, name, source } }: Search, read: ReadPage) => {
    const { name: of, order, table } = source;
    heads.push({ name, source: of, table: table.quotedName, order, isWhole: driver === null, isLoose, read });
  };
  for (const it of searches) {
    const after = before[it.listing.name];
    if (after === null) continue;
    const bounds = { rows, deadlineMs: endMs, glanceRows };
    const isDirect = it.method === "direct" && glanceRows === null;
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

/**
 * Each listing keeps its order; among listings the newest row goes first, and rows without a time go last. Rows that
 * only contain the search word follow those that equal it.
 */
function merged(heads: readonly Head[], from: ListPlace, rows: number) {
  const progress: Record<string, PageEnd | null> = { ...from.progress };
  const looked: Record<string, number> = { ...from.looked };
  const shown = new Map(heads.map(({ name }) => [name, 0]));
  const events: ListedEvent[] = [];
  while (events.length < rows) {
    const next =
      newestHead(
        heads.filter(({ isLoose }) => !isLoose),
        shown,
      ) ?? newestHead(heads, shown);
    if (next === null) break;
    events.push(next.placed.event);
    shown.set(next.name, (shown.get(next.name) ?? 0) + 1);
  }
  for (const { name, read } of heads) {
    const [end, count] = endOf(read, shown.get(name) ?? 0);
    if (end !== undefined) progress[name] = end;
    if (count !== undefined) looked[name] = (from.looked[name] ?? 0) + count;
  }
  return { events, looked, progress };
}

/** Where the listing continues, and how many rows were read up to there. Null when nothing of it was shown. */
function endOf(
  { end, looked, page }: ReadPage,
  shown: number,
): readonly [PageEnd | null | undefined, number | undefined] {
  const next = page[shown];
  if (next === undefined) return [end, looked ?? undefined];
  const last = page[shown - 1];
  if (last !== undefined && last.from === next.from) return [last.end, last.looked];
  return next.from === null ? [last?.end, last?.looked] : [next.from, next.lookedBefore];
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

/** Refuses a search that would overload the database. */
function tooSlow(order: string): string {
  const column = order.replace(/^t\./, "");
  return `the search took too long: filter by state, key or id, or create an index on ${column}`;
}

/** Where each listing's last page ended; null: at its end. */
type Progress = Readonly<Record<string, PageEnd | null>>;

/** How many rows of each listing were searched one by one, over all pages. */
type Looked = Readonly<Record<string, number>>;

/** Where a list continues. */
interface ListPlace {
  readonly progress: Progress;
  readonly looked: Looked;
}

/** The start of a list. */
const FIRST_PAGE: ListPlace = { progress: {}, looked: {} };

/** Encodes where a list continues. */
function writeCursor({ looked, progress }: ListPlace): string {
  return Buffer.from(JSON.stringify([progress, looked])).toString("base64url");
}

/** Decodes a cursor; throws CONFIG_INVALID for anything else. */
function readCursor(cursor: string): ListPlace {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const [progress, looked] = Array.isArray(value) && value.length === 2 ? (value as unknown[]) : [];
    if (isProgress(progress) && isLooked(looked)) return { progress, looked };
  } catch {
    // Falls through to the one error for all invalid cursors.
  }
  throw wrongCursor();
}

function isLooked(value: unknown): value is Looked {
  return isRecord(value) && Object.values(value).every((count) => Number.isSafeInteger(count) && Number(count) >= 0);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isProgress(value: unknown): value is Progress {
  if (!isRecord(value)) return false;
  return Object.values(value).every((end) => end === null || isPageEnd(end));
}

function isPageEnd(end: unknown): end is PageEnd {
  if (!Array.isArray(end) || end.length !== 2) return false;
  const [place, tie] = end as unknown[];
  return (place === null || typeof place === "string") && typeof tie === "string";
}

/** Rows of a table and its partitions as of the last vacuum or analyze; null before the first. */
async function estimatedRows({ database }: OperationTarget, quotedName: string): Promise<number | null> {
  const table = `${quoteLiteral(quotedName)}::regclass`;
  const [row] = await statement(
    database.pool,
    operationReadSettings(database, "estimating how many events there are"),
    `select round(sum(c.reltuples))::bigint from pg_catalog.pg_class c where c.relkind <> 'p' and c.reltuples >= 0
       and (c.oid = ${table} or c.oid in (select relid from pg_catalog.pg_partition_tree(${table})))`,
  );
  return row?.[0] == null ? null : Number(row[0]);
}
