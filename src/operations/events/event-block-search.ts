import { quoteLiteral } from "../../postgres/identifiers.ts";
import { statement } from "../../postgres/transaction.ts";
import type { Listing } from "./event-listing.ts";
import { type Placed, type ReadPage, readListing } from "./event-read.ts";
import { type OperationTarget, operationReadSettings } from "./event-source.ts";
import type { SearchRequest } from "./event-walk.ts";

const STEP_FIRST = 100_000n;
const STEP_GROWTH_MAX = 16n;
const LEFT_MIN_MS = 30;
/** Time for the whole rest at once: when the newest rows have no match, there are probably few. */
const REST_MS = 400;

const DONE = { looked: null, isSearch: false, isStuck: false } as const;

/** The planner uses the block filters only if every other scan is disabled. */
const BLOCK_FILTERS_ONLY = { enable_seqscan: "off", enable_indexscan: "off", enable_indexonlyscan: "off" } as const;

/**
 * Finds the rows of a key or correlation id in a managed outbox by its block filters, which rule out most blocks. They
 * have no order, so the newest rows are searched first, then as much of the older ones as is probably needed: a
 * frequent key is found quickly, a rare one by the second read. The listing is ordered by time.
 */
export async function searchByBlockFilter(
  target: OperationTarget,
  listing: Listing,
  request: SearchRequest,
): Promise<ReadPage> {
  const { after, deadlineMs, rows } = request;
  const page: Placed[] = [];
  let end = after;
  let upTo: string | null = null;
  let at = await placeOf(target, listing, after === null ? null : after[1]);
  let step = await guessedStep(target, listing, rows);
  let isGuess = true;
  let isRest = step === null;
  step ??= STEP_FIRST;
  for (;;) {
    const leftMs = deadlineMs - performance.now();
    if (leftMs < LEFT_MIN_MS) return { page, end, upTo, looked: null, isSearch: true, isStuck: false };
    const from = at === null || isRest ? null : await rowAt(target, listing, at - step);
    const bounded = from === null ? listing : since(listing, from.createdAt);
    const timeoutMs = isRest || isGuess ? Math.min(REST_MS, leftMs) : leftMs;
    const missing = rows - page.length;
    const look = { after: end, rows: missing, window: null, timeoutMs, planner: BLOCK_FILTERS_ONLY };
    const found = await readListing(target, bounded, look);
    if (found === null && !isRest && !isGuess) return { page, end, upTo, looked: null, isSearch: true, isStuck: false };
    const wasGuess = isGuess;
    isGuess = false;
    if (found === null) {
      isRest = false;
      if (wasGuess) step = STEP_FIRST;
      continue;
    }
    page.push(...found);
    if (page.length >= rows) return { ...DONE, page, end: page.at(-1)?.end ?? null, upTo };
    if (from === null) return { ...DONE, page, end: null, upTo };
    isRest = page.length === 0 && step === STEP_FIRST;
    step = nextStep(step, found.length, rows - page.length);
    at = from.place;
    // Every row from this time on was read, whatever its id.
    end = [from.createdAt, FIRST_ID];
    upTo = from.shownAt;
  }
}

/**
 * How far back the wanted rows probably are, by the statistics of the database; null for the whole table. An estimate
 * that is too large times out, and the search then starts with few rows.
 */
async function guessedStep(target: OperationTarget, listing: Listing, rows: number): Promise<bigint | null> {
  const { conditions, source } = listing;
  const estimate = async (where: string) => {
    const [row] = await ask(target, listing, `explain (format json) select from ${source.table.quotedName} t ${where}`);
    const [plan] = JSON.parse(row?.[0] ?? "[]") as { readonly Plan?: { readonly "Plan Rows"?: number } }[];
    return plan?.Plan?.["Plan Rows"] ?? 0;
  };
  const [all, found] = [await estimate(""), await estimate(`where ${conditions.join(" and ")}`)];
  const wanted = (rows * all * 3) / (Math.max(1, found) * 2);
  if (wanted >= all) return null;
  return BigInt(Math.max(Number(STEP_FIRST), Math.round(wanted)));
}

/** As many rows as would contain the missing ones at the density of the last read, and half as many again. */
function nextStep(step: bigint, found: number, missing: number): bigint {
  const wanted = found === 0 ? step * STEP_GROWTH_MAX : (step * BigInt(missing) * 3n) / (BigInt(found) * 2n);
  const most = step * STEP_GROWTH_MAX;
  return wanted < STEP_FIRST ? STEP_FIRST : wanted > most ? most : wanted;
}

/** Sorts before all other ids, so that the next read starts with older times. */
const FIRST_ID = "00000000-0000-0000-0000-000000000000";

function since(listing: Listing, time: string): Listing {
  return { ...listing, conditions: [...listing.conditions, `${listing.place} >= ${quoteLiteral(time)}`] };
}

interface FoundRow {
  readonly place: bigint;
  readonly createdAt: string;
  readonly shownAt: string;
}

async function placeOf(target: OperationTarget, listing: Listing, id: string | null): Promise<bigint | null> {
  const { order, table } = listing.source;
  const which = id === null || id === FIRST_ID ? "" : `where ${table.id} = ${quoteLiteral(id)}::uuid`;
  const [row] = await ask(
    target,
    listing,
    `select ${order} from ${table.quotedName} t ${which} order by ${order} desc limit 1`,
  );
  if (row?.[0] != null) return BigInt(row[0]);
  return id === null ? null : await placeOf(target, listing, null);
}

async function rowAt(target: OperationTarget, listing: Listing, place: bigint): Promise<FoundRow | null> {
  const { order, table } = listing.source;
  const text = `select ${order}, ${table.createdAt}::text from ${table.quotedName} t
    where ${order} <= ${place} order by ${order} desc limit 1`;
  const [row] = await ask(target, listing, text);
  if (row?.[0] == null || row[1] == null) return null;
  return { place: BigInt(row[0]), createdAt: row[1], shownAt: new Date(row[1]).toISOString() };
}

async function ask({ database }: OperationTarget, { source }: Listing, text: string) {
  return await statement(database.pool, operationReadSettings(database, "looking for events", source.name), text);
}
