import type { Listing } from "./event-listing.ts";
import type { PageEnd } from "./event-page.sql.ts";
import { type Placed, type ReadPage, readListing } from "./event-read.ts";
import type { OperationTarget } from "./event-source.ts";

export interface SearchRequest {
  readonly after: PageEnd | null;
  readonly rows: number;
  readonly since: Date | undefined;
  /** Of `performance.now()`. */
  readonly deadlineMs: number;
}

const WINDOW_MIN = 500;
const WINDOW_FIRST = 1_000;
/** What the relay wrote down of events is mostly what is meant, and each is looked up by itself. */
const WINDOW_FIRST_DRIVEN = 500;
const WINDOW_MAX = 128_000;
/** A window that is over sooner is followed by a larger one, a longer one by a smaller. */
const QUICK_MS = 100;
const SLOW_MS = 400;
/** With less left, no further look is worth its while. */
const LEFT_MIN_MS = 30;
/** Rows are not written quite in the order of their times: a transaction may be open for a while. */
const OUT_OF_ORDER_MS = 3_600_000;

/**
 * Looks at row after row from the newest on, in windows whose cost is known beforehand, until there are enough or the
 * time is over. No single statement is ever large.
 */
export async function walk(target: OperationTarget, listing: Listing, request: SearchRequest): Promise<ReadPage> {
  const { deadlineMs, rows, since } = request;
  const page: Placed[] = [];
  let end = request.after;
  let upTo: string | null = null;
  let window = listing.driver === null ? WINDOW_FIRST : WINDOW_FIRST_DRIVEN;
  let isStuck = true;
  const result = (at: PageEnd | null): ReadPage => ({ page, end: at, upTo, isSearch: true, isStuck });
  for (;;) {
    const startedMs = performance.now();
    const timeoutMs = deadlineMs - startedMs;
    if (timeoutMs < LEFT_MIN_MS) return result(end);
    const missing = rows - page.length;
    const seen = await readListing(target, listing, { after: end, rows: missing, window, timeoutMs });
    if (seen === null) return result(end);
    isStuck = false;
    page.push(...seen.filter(({ isMeant }) => isMeant).slice(0, missing));
    const last = page.length === rows ? page.at(-1) : seen.find(({ isEdge }) => isEdge);
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

/** The newest rows alone, for whoever looks again and again. */
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
  return { page, end: edge?.end ?? null, upTo, newest, isSearch: true, isStuck: seen === null };
}
