import { eventBytes } from "../../core/event-size.ts";
import type { ClaimedEvent, Grant, Heads, LookedAt, PipelineSpec, RunRequest } from "../../ports/queue-store.ts";
import { displayTable, quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import { requireGrant, writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row } from "../../postgres/session.ts";
import { statement, transaction } from "../../postgres/transaction.ts";
import { claimSql } from "./claim.sql.ts";
import { claimHeadsSql } from "./claim-heads.sql.ts";
import { COLUMN, eventColumns, HEADERS_BYTES } from "./event-columns.ts";
import { readEvents } from "./event-reader.ts";
import { findGoneSql } from "./find-gone.sql.ts";
import type { QueueScope } from "./openoutbox-table.ts";

/** One pipeline of the table, as far as its statements need to know it. */
export interface Queue {
  readonly database: Database;
  readonly spec: PipelineSpec;
  readonly scope: QueueScope;
  readonly hasOrderIndex: boolean;
  readonly memory: ClaimMemory;
}

/** What claims tell the next ones. */
export class ClaimMemory {
  /** The highest number of a claim. The next ones are higher, also when the database's clock steps back. */
  lastNumber = 0;
  #rowBytes = 0;

  seen(rows: readonly Row[], events: readonly ClaimedEvent[]): void {
    for (const row of rows) this.lastNumber = Math.max(this.lastNumber, Number(row[COLUMN.number]));
    const bytes = events.reduce((sum, event) => sum + eventBytes(event), 0);
    if (events.length > 0) this.#rowBytes = bytes / events.length;
  }

  /** Rows beyond those that fit would be measured for nothing, which costs much where they are wide. */
  rowsFor(rows: number, bytes: number): number {
    const fitting = this.#rowBytes === 0 ? rows : Math.ceil((4 * bytes) / this.#rowBytes);
    return Math.min(rows, Math.max(ROWS_MIN, fitting));
  }
}

const ROWS_MIN = 20;

/**
 * Leaves the planner only the index in its order, also on a small table, where a sort would be cheaper but would mix
 * up equal times. The memory keeps the subplans hashed that leave holds and types out: by their estimate they must
 * fit, or they would be searched once per row.
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

export async function claim(
  queue: Queue,
  request: RunRequest,
  rows: number,
  bytes: number,
  rooms: ReadonlyMap<number, number> | null,
): Promise<readonly ClaimedEvent[]> {
  const { database, spec, scope, hasOrderIndex, memory } = queue;
  const [first, ...others] = request.grants.filter(({ lane }) => rooms === null || (rooms.get(lane) ?? 0) > 0);
  if (first === undefined) return [];
  const settings = {
    ...writeSettings(database, "claiming events", displayTable(scope.table.name)),
    settings: hasOrderIndex ? CLAIM_SETTINGS : { jit: "off", work_mem: CLAIM_SETTINGS.work_mem },
  };
  const { lastNumber } = memory;
  const grants: [Grant, ...Grant[]] = [first, ...others];
  const limits = { rows: memory.rowsFor(rows, bytes), bytes, rooms };
  const text = claimSql(scope, { ...request, ...limits, spec, grants, lastNumber, hasOrderIndex });
  const found = await statement(database.pool, settings, text);
  await forgetDeadLetters(queue, found);
  const events = readEvents(found, spec);
  memory.seen(found, events);
  return events;
}

/** A dead event that parked nobody has no hold to be revived: when a person sets it back, it simply comes again. What was replayed stays as history. */
async function forgetDeadLetters({ database, scope }: Queue, rows: readonly Row[]): Promise<void> {
  const ids = rows.filter((row) => row[COLUMN.hasFailed] === "t").map((row) => row[COLUMN.id] ?? "");
  if (ids.length === 0) return;
  const text = `delete from ${scope.tables.failedEvents}
    where pipeline = ${quoteLiteral(scope.pipeline)} and resolved_at is null
      and original_event_id = any(${quoteArray(ids)}::text[])`;
  await statement(database.pool, writeSettings(database, "forgetting dead letters"), text);
}

export async function claimHeads(queue: Queue, grant: Grant, ids: readonly string[]): Promise<Heads> {
  const { database, spec, scope } = queue;
  if (ids.length === 0) return { events: [], gone: [] };
  const settings = {
    ...writeSettings(database, "claiming held events", displayTable(scope.table.name)),
    settings: BY_ID_SETTINGS,
  };
  return await transaction(database.pool, settings, async (session) => {
    await requireGrant(session, database, scope.pipeline, grant);
    const rows = await session.rows(claimHeadsSql(scope, spec, grant, ids));
    const events = readEvents(rows, spec);
    if (events.length === ids.length) return { events, gone: [] };
    const gone = await session.rows(findGoneSql(scope, grant.owner, ids));
    return { events, gone: gone.map((row) => row[0] ?? "") };
  });
}

/** One at a time, so that nothing has to be bounded: the ids here are UUIDs, and nobody compares those. */
export async function lookAt({ database, spec, scope }: Queue, ids: readonly string[]): Promise<LookedAt> {
  const [first, ...unread] = ids;
  if (first === undefined) return { events: [], unread: [] };
  const settings = {
    ...writeSettings(database, "looking at an event", displayTable(scope.table.name)),
    readOnly: true,
  };
  const rows = await statement(
    database.pool,
    settings,
    `select ${eventColumns(spec)} from ${scope.table.quotedName} t
       cross join lateral (select 0 as lane, 0 as rank, 0 as number, ${HEADERS_BYTES} as headers_bytes offset 0) r
     where t.event_id = any(${quoteArray([first])}::uuid[]) and t.status <> 'DELIVERED'`,
  );
  return { events: readEvents(rows, spec), unread };
}
