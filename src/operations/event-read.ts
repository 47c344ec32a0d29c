import { isRelayError, RelayError } from "../core/errors.ts";
import type { Row } from "../postgres/session.ts";
import { statement } from "../postgres/transaction.ts";
import type { EventState } from "./event-filter.ts";
import type { Listing } from "./event-listing.ts";
import { eventPageSql, type PageEnd } from "./event-page.sql.ts";
import { type OperationTarget, operationReadSettings } from "./event-source.ts";

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

export interface Placed {
  readonly event: ListedEvent;
  readonly end: PageEnd;
  /** From where it was found by looking on: nothing between there and here is meant. */
  readonly from: PageEnd | null;
}

/** What came of reading along one listing. */
export interface ReadPage {
  readonly page: readonly Placed[];
  /** How far it has looked; null: to the end. */
  readonly end: PageEnd | null;
  /** The time of the last row that was looked at; null where nobody knows it. */
  readonly upTo: string | null;
  /** That of the first row, where it was looked at for its own sake. */
  readonly newest?: string | null;
  /** True where it looked at row after row, so that it may end before it has found enough. */
  readonly isSearch: boolean;
  /** True where not even the first look came back in time. */
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
}

/** Null when the answer did not come in time. */
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

/** A table that somebody has locked does not even let itself be planned for. */
const PLAN_MS = 300;

/** What the planner believes a page costs, in its own units; null where it cannot say. */
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

export function wrongCursor(): RelayError {
  return new RelayError("CONFIG_INVALID", "The cursor is not one that a list gave out");
}

/** A cursor is checked by the types that it is compared with: what does not fit them is nobody's. */
function isWrongCursor(error: unknown): boolean {
  return isRelayError(error) && /\(SQLSTATE 22...\)/.test(error.message);
}

function readRow({ source }: Listing, row: Row, from: PageEnd | null, window: number | null): ReadRow {
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
  };
  const isEdge = window !== null && number === String(window);
  return { event, end: [place ?? null, tie ?? ""], from, isMeant: isMeant === "t", isEdge };
}
