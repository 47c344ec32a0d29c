import { eventBytes } from "../../../core/event.ts";
import type { ClaimedEvent, Grant, Heads, PipelineSpec, RunRequest } from "../../../ports/queue-store.ts";
import { displayTable, quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import { requireGrant, writeSettings } from "../../../postgres/lanes.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Row } from "../../../postgres/session.ts";
import { statement, transaction } from "../../../postgres/transaction.ts";
import { COLUMN } from "../event-columns.ts";
import type { EventReader } from "../event-reader.ts";
import { claimHeadsSql, claimSql, findGoneSql } from "./claim.sql.ts";
import { CLAIM_COLUMN, readClaimed } from "./event-columns.ts";
import type { QueueScope } from "./openoutbox-table.ts";

/** One pipeline of the table, as its statements need it. */
export interface Queue {
  readonly database: Database;
  readonly spec: PipelineSpec;
  readonly scope: QueueScope;
  readonly reader: EventReader;
  readonly memory: ClaimMemory;
}

/** What a claim passes on to the next one. */
export class ClaimMemory {
  /** The highest claim number. The next ones are higher, even when the database's clock steps back. */
  lastNumber = 0;
  #rowBytes = 0;

  seen(rows: readonly Row[], events: readonly ClaimedEvent[]): void {
    for (const row of rows) this.lastNumber = Math.max(this.lastNumber, Number(row[CLAIM_COLUMN.number]));
    const bytes = events.reduce((sum, event) => sum + eventBytes(event), 0);
    if (events.length > 0) this.#rowBytes = bytes / events.length;
  }

  /**
   * Limits the rows by the size of former ones: the server would measure rows beyond the byte limit for nothing, which
   * is expensive for wide rows.
   */
  rowsFor(rows: number, bytes: number): number {
    const fitting = this.#rowBytes === 0 ? rows : Math.ceil((4 * bytes) / this.#rowBytes);
    return Math.min(rows, Math.max(ROWS_MIN, fitting));
  }
}

const ROWS_MIN = 20;

/**
 * Leaves the planner only the index in order, even on a small table, where a sort would be cheaper but would mix up
 * equal times. The memory keeps the subplans for holds and types hashed: they must fit by their estimate, or they are
 * searched once per row.
 */
export const CLAIM_SETTINGS = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_sort: "off",
  enable_incremental_sort: "off",
  jit: "off",
  work_mem: "256MB",
};

/** Rows are looked up by primary key, however small the table is. */
export const BY_ID_SETTINGS = { enable_seqscan: "off", enable_hashjoin: "off", enable_mergejoin: "off", jit: "off" };

/** Claims the next events of these lanes. */
export async function claim(
  queue: Queue,
  request: RunRequest,
  rows: number,
  bytes: number,
  rooms: ReadonlyMap<number, number> | null,
): Promise<readonly ClaimedEvent[]> {
  const { database, spec, scope, reader, memory } = queue;
  const hasOrderIndex = scope.shape.claims?.hasOrderIndex ?? false;
  const [first, ...others] = request.grants.filter(({ lane }) => rooms === null || (rooms.get(lane) ?? 0) > 0);
  if (first === undefined) return [];
  const settings = {
    ...writeSettings(database, "claiming events", displayTable(scope.shape.name)),
    settings: hasOrderIndex ? CLAIM_SETTINGS : { jit: "off", work_mem: CLAIM_SETTINGS.work_mem },
  };
  const { lastNumber } = memory;
  const grants: [Grant, ...Grant[]] = [first, ...others];
  const limits = { rows: memory.rowsFor(rows, bytes), bytes, rooms };
  const text = claimSql(scope, { ...request, ...limits, spec, grants, lastNumber, hasOrderIndex });
  const found = await statement(database.pool, settings, text);
  await forgetDeadLetters(queue, found);
  const events = readClaimed(found, reader);
  memory.seen(found, events);
  return events;
}

/**
 * Deletes dead letters of rows that came back. A dead event that parked no key has no hold to revive: after an operator
 * resets it, it is simply claimed again. Resolved dead letters stay as history.
 */
async function forgetDeadLetters({ database, scope }: Queue, rows: readonly Row[]): Promise<void> {
  const ids = rows.filter((row) => row[CLAIM_COLUMN.hasFailed] === "t").map((row) => row[COLUMN.id] ?? "");
  if (ids.length === 0) return;
  const text = `delete from ${scope.tables.failedEvents}
    where pipeline = ${quoteLiteral(scope.pipeline)} and resolved_at is null
      and original_event_id = any(${quoteArray(ids)}::text[])`;
  await statement(database.pool, writeSettings(database, "forgetting dead letters"), text);
}

/** Claims held events by id, and reports those that are gone. */
export async function claimHeads(queue: Queue, grant: Grant, ids: readonly string[]): Promise<Heads> {
  const { database, spec, scope, reader } = queue;
  if (ids.length === 0) return { events: [], gone: [] };
  const settings = {
    ...writeSettings(database, "claiming held events", displayTable(scope.shape.name)),
    settings: BY_ID_SETTINGS,
  };
  return await transaction(database.pool, settings, async (session) => {
    await requireGrant(session, database, scope.pipeline, grant);
    const rows = await session.rows(claimHeadsSql(scope, spec, grant, ids));
    const events = readClaimed(rows, reader);
    if (events.length === ids.length) return { events, gone: [] };
    const gone = await session.rows(findGoneSql(scope, grant.owner, ids));
    return { events, gone: gone.map((row) => row[0] ?? "") };
  });
}
