import type { Listing } from "./event-listing.ts";
import type { PageEnd } from "./event-page.sql.ts";
import { candidatesFor, type Placed, type ReadPage, readListing } from "./event-read.ts";
import type { OperationTarget } from "./event-source.ts";

export interface SearchRequest {
  readonly after: PageEnd | null;
  readonly rows: number;
  readonly since: Date | undefined;
  /** In the time of `performance.now()`. */
  readonly deadlineMs: number;
}

const WINDOW_MIN = 500;
const WINDOW_FIRST = 1_000;
/** Most rows of a driver match, and each costs a lookup of its own, so the window starts smaller. */
const WINDOW_FIRST_DRIVEN = 500;
const WINDOW_MAX = 128_000;
/** A faster window is followed by a larger one, a slower by a smaller one. */
const QUICK_MS = 100;
const SLOW_MS = 400;
/** With less time left, another read is not worth starting. */
const LEFT_MIN_MS = 30;
/** Times are not strictly ordered: a transaction may stay open for a while. */
const OUT_OF_ORDER_MS = 3_600_000;

/**
 * Reads row by row, newest first, in windows of known cost, until there are enough matches or time is up. No single
 * statement is ever large.
 */
export async function walk(target: OperationTarget, listing: Listing, request: SearchRequest): Promise<ReadPage> {
  const { deadlineMs, rows, since } = request;
  const page: Placed[] = [];
  let end = request.after;
  let upTo: string | null = null;
  let window = listing.driver === null ? WINDOW_FIRST : WINDOW_FIRST_DRIVEN;
  let isStuck = true;
  let looked = 0;
  const result = (at: PageEnd | null): ReadPage => ({ page, end: at, upTo, looked, isSearch: true, isStuck });
  for (;;) {
    const startedMs = performance.now();
    const timeoutMs = deadlineMs - startedMs;
    if (timeoutMs < LEFT_MIN_MS) return result(end);
    const missing = rows - page.length;
    const asked = candidatesFor(listing, missing);
    const seen = await readListing(target, listing, { after: end, rows: asked, window, timeoutMs });
    if (seen === null) return result(end);
    isStuck = false;
    const lookedBefore = looked;
    const found = seen.filter(({ isMeant }) => isMeant).slice(0, missing);
    page.push(...found.map((it) => ({ ...it, looked: lookedBefore + it.number, lookedBefore })));
    // There are more candidates than requested: the search continues behind the last of them.
    const cutAt = seen.length > asked + 1 ? seen.at(-1) : undefined;
    const last = page.length === rows ? found.at(-1) : (seen.find(({ isEdge }) => isEdge) ?? cutAt);
    looked += (last ?? seen.at(-1))?.number ?? 0;
    if (last === undefined) return result(null);
    end = last.end;
    upTo = last.event.createdAt;
    if (page.length === rows) return result(end);
    if (since !== undefined && upTo !== null && Date.parse(upTo) < since.getTime() - OUT_OF_ORDER_MS)
      return result(null);
    const tookMs = performance.now() - startedMs;
    if (tookMs < QUICK_MS) window = Math.min(WINDOW_MAX, window * 4);
    else if (tookMs > SLOW_MS) window = Math.max(WINDOW_MIN, Math.round(window / 2));
  }
}

/** Reads only the newest rows, for clients that poll. */
export async function glanceAt(
  target: OperationTarget,
  listing: Listing,
  { deadlineMs, rows }: SearchRequest,
  window: number,
): Promise<ReadPage> {
  const timeoutMs = deadlineMs - performance.now();
  const seen = await readListing(target, listing, { after: null, rows, window, timeoutMs });
  const edge = seen?.find(({ isEdge }) => isEdge);
  const page = (seen ?? []).filter(({ isMeant }) => isMeant).slice(0, rows);
  const upTo = edge?.event.createdAt ?? null;
  const newest = seen?.[0]?.event.createdAt ?? null;
  return { page, end: edge?.end ?? null, upTo, newest, looked: null, isSearch: true, isStuck: seen === null };
}
