import { isRelayError, RelayError } from "../../core/errors.ts";
import type { Row } from "../../postgres/session.ts";
import { statement } from "../../postgres/transaction.ts";
import type { EventState } from "./event-filter.ts";
import type { Listing } from "./event-listing.ts";
import { eventPageSql, type PageEnd } from "./event-page.sql.ts";
import { bytesOf } from "./event-payload.ts";
import { type OperationTarget, operationReadSettings } from "./event-source.ts";
import { payloadMatches } from "./payload-match.ts";

/** An event in a list. */
export interface ListedEvent {
  readonly source: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly correlationId: string | null;
  readonly createdAt: string | null;
  readonly state: EventState;
  /** Number of failures so far; null without a failure. */
  readonly attempts: number | null;
  readonly reason: string | null;
  readonly nextAttemptAt: string | null;
  /** The event that this one waits for. */
  readonly parkedBehind: string | null;
  /** The pipeline whose route matches it now; null when none does, in a log, and when it is unknown. */
  readonly pipeline: string | null;
  /** What it waits for besides earlier events: its pipeline is paused, or its time has not come. */
  readonly waitsFor: WaitReason | null;
}

/** Reasons why an undelivered event waits although nothing failed. */
export const WAIT_REASONS = ["paused", "scheduled"] as const;

/** One of them. */
type WaitReason = (typeof WAIT_REASONS)[number];

/** A listed event with its position. */
export interface Placed {
  readonly event: ListedEvent;
  readonly end: PageEnd;
  /** Where the search for it started: no row between there and here matches. */
  readonly from: PageEnd | null;
  /** Rows read up to this one, and up to where its search started; absent where an index was used. */
  readonly looked?: number;
  readonly lookedBefore?: number;
}

/** The result of reading one listing. */
export interface ReadPage {
  readonly page: readonly Placed[];
  /** How far it has read; null: to the end. */
  readonly end: PageEnd | null;
  /** Time of the last row that was read; null when unknown. */
  readonly upTo: string | null;
  /** Time of the first row, when only the newest rows were read. */
  readonly newest?: string | null;
  /** Rows that were read one by one; null when not counted. */
  readonly looked: number | null;
  /** True for a search row by row, which may end before it finds enough. */
  readonly isSearch: boolean;
  /** True when not even the first read finished in time. */
  readonly isStuck: boolean;
}

interface ReadRequest {
  readonly after: PageEnd | null;
  readonly rows: number;
  readonly window: number | null;
  readonly timeoutMs: number;
  readonly planner?: Readonly<Record<string, string>>;
}

interface ReadRow extends Placed {
  readonly isMeant: boolean;
  readonly isEdge: boolean;
  /** Within its window. */
  readonly number: number;
}

/** Payloads that are read at once to match their fields: about 13 MB at most on the wire. */
const CANDIDATES = 100;

/**
 * How many rows one read requests. More than are missing where payload fields decide, because not every candidate
 * matches.
 */
export function candidatesFor({ payload }: Listing, missing: number): number {
  return payload === undefined ? missing : Math.max(missing, CANDIDATES);
}

/** Null when the query timed out. */
export async function readListing(
  { database }: OperationTarget,
  listing: Listing,
  { after, planner = {}, rows, timeoutMs, window }: ReadRequest,
): Promise<readonly ReadRow[] | null> {
  const settings = operationReadSettings(database, "listing events", listing.source.name);
  const own = { ...settings, statementTimeoutMs: Math.max(1, Math.round(timeoutMs)) };
  try {
    const found = await statement(
      database.pool,
      { ...own, settings: { ...settings.settings, ...planner } },
      eventPageSql(listing, database.tables, { after, rows, window }),
    );
    return found.map((row) => readRow(listing, row, after, window));
  } catch (error) {
    if (isRelayError(error, "DATABASE_BUSY")) return null;
    if (after !== null && isWrongCursor(error)) throw wrongCursor();
    throw error;
  }
}

/** Planning waits for a lock on the table, so it needs a limit of its own. */
const PLAN_MS = 300;

/** The planner's estimated cost of a page; null when it cannot be planned in time. */
export async function pageCost(
  { database }: OperationTarget,
  listing: Listing,
  after: PageEnd | null,
  rows: number,
): Promise<number | null> {
  const settings = {
    ...operationReadSettings(database, "planning a search", listing.source.name),
    statementTimeoutMs: PLAN_MS,
  };
  try {
    const page = eventPageSql(listing, database.tables, { after, rows, window: null });
    const [row] = await statement(database.pool, settings, `explain (format json) ${page}`);
    const [plan] = JSON.parse(row?.[0] ?? "[]") as { readonly Plan?: { readonly "Total Cost"?: number } }[];
    return plan?.Plan?.["Total Cost"] ?? null;
  } catch (error) {
    if (isRelayError(error, "DATABASE_BUSY")) return null;
    if (after !== null && isWrongCursor(error)) throw wrongCursor();
    throw error;
  }
}

/** The error for an invalid cursor. */
export function wrongCursor(): RelayError {
  return new RelayError("CONFIG_INVALID", "The cursor is invalid: use one that a list returned");
}

/**
 * The database checks a cursor's values by the types that it compares them with: a cursor with other values is invalid.
 */
function isWrongCursor(error: unknown): boolean {
  return isRelayError(error) && /\(SQLSTATE 22...\)/.test(error.message);
}

function readRow({ payload, source }: Listing, row: Row, from: PageEnd | null, window: number | null): ReadRow {
  const [
    id,
    type,
    key,
    correlationId,
    createdAt,
    place,
    tie,
    isMeant,
    number,
    state,
    attempts,
    reason,
    nextAt,
    behind,
    pipeline,
    waitsFor,
    bytes,
    size,
  ] = row;
  const event: ListedEvent = {
    source: source.name,
    id: id ?? "",
    type: type ?? "",
    key: key ?? null,
    correlationId: correlationId ?? null,
    createdAt: createdAt ?? null,
    state: state as EventState,
    attempts: attempts == null ? null : Number(attempts),
    reason: reason ?? null,
    nextAttemptAt: nextAt ?? null,
    parkedBehind: behind ?? null,
    pipeline: pipeline ?? null,
    waitsFor: (waitsFor ?? null) as WaitReason | null,
  };
  const isEdge = window !== null && number === String(window);
  const isFound = isMeant === "t" && (payload === undefined || payloadMatches(bytesOf(bytes), Number(size), payload));
  return { event, end: [place ?? null, tie ?? ""], from, isMeant: isFound, isEdge, number: Number(number ?? 0) };
}
