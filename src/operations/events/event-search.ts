import { searchByBlockFilter } from "./event-block-search.ts";
import type { EventFilter } from "./event-filter.ts";
import { anyOfWord, exactWord, type Listing, listingsOf, wordListings } from "./event-listing.ts";
import type { PageEnd } from "./event-page.sql.ts";
import { pageCost, type ReadPage, readListing } from "./event-read.ts";
import type { EventSource, OperationTarget } from "./event-source.ts";
import { glanceAt, walk } from "./event-walk.ts";

/** One listing and the method to read it. */
export interface Search {
  readonly listing: Listing;
  readonly method: "direct" | "block-filter" | "walk";
}

/** In the planner's units, where reading one page of the table sequentially costs 1: at most about 150 MB. */
const CHEAP_COST = 20_000;
/** The planner may be wrong: this limit notices it early. */
const DIRECT_MS = 800;

interface SearchBounds {
  readonly rows: number;
  readonly deadlineMs: number;
  /** Only this many of the newest rows; null: as many as time allows. */
  readonly glanceRows: number | null;
}

interface Planning {
  readonly before: Readonly<Record<string, PageEnd | null>>;
  readonly rows: number;
  /** Reads of only the newest rows need no plan. */
  readonly isGlance: boolean;
}

/** Chooses how to read each listing of a source, by the planner's estimate: it knows indexes and values. */
export async function searchesOf(
  target: OperationTarget,
  source: EventSource,
  filter: EventFilter,
  planning: Planning,
): Promise<readonly Search[]> {
  const { key, correlationId, payload, word } = filter;
  const searches: Search[] = [];
  for (const listing of listingsOf(source, target.database.tables, filter)) {
    if (planning.isGlance)
      searches.push({ listing: word === undefined ? listing : anyOfWord(listing, word), method: "walk" });
    else if (word !== undefined) searches.push(...(await wordSearches(target, listing, word, planning)));
    else if (canUseBlockFilters(listing) && (key ?? correlationId) !== undefined && !hasIds(filter))
      searches.push({ listing: byTime(listing), method: "block-filter" });
    else if (hasIds(filter)) searches.push({ listing, method: "direct" });
    else if (payload !== undefined) searches.push({ listing, method: "walk" });
    else searches.push(await planned(target, listing, planning));
  }
  return searches;
}

async function wordSearches(
  target: OperationTarget,
  listing: Listing,
  word: string,
  planning: Planning,
): Promise<readonly Search[]> {
  const { byId, loose, others } = wordListings(listing, word);
  const searches: Search[] = [];
  for (const it of byId) searches.push({ listing: it, method: "direct" });
  if (canUseBlockFilters(listing)) {
    searches.push({ listing: byTime(exactWord(listing, word)), method: "block-filter" });
    return [...searches, await planned(target, loose, planning)];
  }
  const each: Search[] = [];
  for (const it of [...others, loose]) each.push(await planned(target, it, planning));
  if (each.slice(0, -1).every(({ method }) => method === "direct")) return [...searches, ...each];
  return [...searches, { listing: anyOfWord(listing, word), method: "walk" }];
}

async function planned(target: OperationTarget, listing: Listing, { before, rows }: Planning): Promise<Search> {
  const after = before[listing.name];
  if (after === null || (listing.conditions.length === 0 && listing.driver === null))
    return { listing, method: "direct" };
  const cost = await pageCost(target, listing, after ?? null, rows);
  return { listing, method: cost !== null && cost <= CHEAP_COST ? "direct" : "walk" };
}

function canUseBlockFilters({ driver, source }: Listing): boolean {
  return source.hasBlockFilters && driver === null;
}

function hasIds({ id, ids }: EventFilter): boolean {
  return id !== undefined || ids !== undefined;
}

function byTime(listing: Listing): Listing {
  return { ...listing, name: `${listing.name} by time`, place: listing.source.table.createdAt };
}

/** Reads a page through an index; null when that is too slow and a search is needed. */
export async function readDirectly(
  target: OperationTarget,
  listing: Listing,
  after: PageEnd | null,
  { deadlineMs, rows }: SearchBounds,
): Promise<ReadPage | null> {
  const timeoutMs = Math.max(50, Math.min(DIRECT_MS, deadlineMs - performance.now()));
  const seen = await readListing(target, listing, { after, rows, window: null, timeoutMs });
  if (seen === null) return null;
  const last = seen.at(-1);
  const end = seen.length < rows || last === undefined ? null : last.end;
  const page = seen.filter(({ isMeant }) => isMeant);
  return { page, end, upTo: null, looked: null, isSearch: false, isStuck: false };
}

export async function search(
  target: OperationTarget,
  { listing, method }: Search,
  after: PageEnd | null,
  { deadlineMs, glanceRows, rows }: SearchBounds,
  since: Date | undefined,
): Promise<ReadPage> {
  const request = { after, rows, since, deadlineMs };
  if (glanceRows !== null) return await glanceAt(target, listing, request, glanceRows);
  return method === "block-filter"
    ? await searchByBlockFilter(target, listing, request)
    : await walk(target, listing, request);
}
