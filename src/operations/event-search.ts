import type { EventFilter } from "./event-filter.ts";
import { anyOfWord, type Listing, listingsOf, wordListings } from "./event-listing.ts";
import type { PageEnd } from "./event-page.sql.ts";
import { pageCost, type ReadPage, readListing } from "./event-read.ts";
import { sift } from "./event-sift.ts";
import type { EventSource, OperationTarget } from "./event-source.ts";
import { glanceAt, walk } from "./event-walk.ts";

/** One listing and the way through it. */
export interface Search {
  readonly listing: Listing;
  readonly way: "direct" | "sift" | "walk";
}

/** In the planner's units, where reading a page of the table in turn is 1: some 150 MB at most. */
const CHEAP_COST = 20_000;
/** The planner may be wrong, and then it is found out soon. */
const DIRECT_MS = 800;

interface SearchBounds {
  readonly rows: number;
  readonly deadlineMs: number;
  /** The newest so many rows alone; null: for as long as there is time. */
  readonly glanceRows: number | null;
}

interface Planning {
  readonly before: Readonly<Record<string, PageEnd | null>>;
  readonly rows: number;
  /** Whoever glances at the newest rows alone needs no plan. */
  readonly isGlance: boolean;
}

/** How each listing of a source is best read. The planner is asked, since it knows the indexes and the values. */
export async function searchesOf(
  target: OperationTarget,
  source: EventSource,
  filter: EventFilter,
  planning: Planning,
): Promise<readonly Search[]> {
  const { key, correlationId, word } = filter;
  const searches: Search[] = [];
  for (const listing of listingsOf(source, target.database.tables, filter)) {
    if (planning.isGlance)
      searches.push({ listing: word === undefined ? listing : anyOfWord(listing, word), way: "walk" });
    else if (word !== undefined) searches.push(...(await wordSearches(target, listing, word, planning)));
    else if (canSift(listing) && (key ?? correlationId) !== undefined && !hasIds(filter))
      searches.push({ listing: byTime(listing), way: "sift" });
    else if (hasIds(filter)) searches.push({ listing, way: "direct" });
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
  const { byId, others } = wordListings(listing, word);
  const searches: Search[] = [];
  for (const it of byId) searches.push({ listing: it, way: "direct" });
  if (canSift(listing)) return [...searches, { listing: byTime(anyOfWord(listing, word)), way: "sift" }];
  const each: Search[] = [];
  for (const it of others) each.push(await planned(target, it, planning));
  if (each.every(({ way }) => way === "direct")) return [...searches, ...each];
  return [...searches, { listing: anyOfWord(listing, word), way: "walk" }];
}

async function planned(target: OperationTarget, listing: Listing, { before, rows }: Planning): Promise<Search> {
  const after = before[listing.name];
  if (after === null || (listing.conditions.length === 0 && listing.driver === null)) return { listing, way: "direct" };
  const cost = await pageCost(target, listing, after ?? null, rows);
  return { listing, way: cost !== null && cost <= CHEAP_COST ? "direct" : "walk" };
}

function canSift({ driver, source }: Listing): boolean {
  return source.isSifted && driver === null;
}

function hasIds({ id, ids }: EventFilter): boolean {
  return id !== undefined || ids !== undefined;
}

function byTime(listing: Listing): Listing {
  return { ...listing, name: `${listing.name} by time`, place: listing.source.table.createdAt };
}

/** Reads a page, if it comes quickly; null where it takes a search. */
export async function readDirectly(
  target: OperationTarget,
  listing: Listing,
  after: PageEnd | null,
  { deadlineMs, rows }: SearchBounds,
): Promise<ReadPage | null> {
  const timeoutMs = Math.max(50, Math.min(DIRECT_MS, deadlineMs - performance.now()));
  const page = await readListing(target, listing, { after, rows, window: null, timeoutMs });
  if (page === null) return null;
  const last = page.at(-1);
  const end = page.length < rows || last === undefined ? null : last.end;
  return { page, end, upTo: null, isSearch: false, isStuck: false };
}

export async function search(
  target: OperationTarget,
  { listing, way }: Search,
  after: PageEnd | null,
  { deadlineMs, glanceRows, rows }: SearchBounds,
  since: Date | undefined,
): Promise<ReadPage> {
  const request = { after, rows, since, deadlineMs };
  if (glanceRows !== null) return await glanceAt(target, listing, request, glanceRows);
  return way === "sift" ? await sift(target, listing, request) : await walk(target, listing, request);
}
