import type { Settlement, SettleResult } from "../../../ports/queue-store.ts";
import { fenceSql } from "../../../postgres/fence.sql.ts";
import { deleteHolds, writeFailures, writeSuspects } from "../../../postgres/holds.ts";
import { quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import { fenced, writeSettings } from "../../../postgres/lanes.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Session } from "../../../postgres/session.ts";
import { statement, transaction } from "../../../postgres/transaction.ts";
import type { TableShape } from "../table-shape.ts";
import type { WindowRow } from "./lane-window.ts";
import type { LogKind } from "./log-kind.ts";
import type { LogLane } from "./log-lane.ts";
import { park, settleElsewhere } from "./parked.ts";

interface SettleContext<Segment> {
  readonly database: Database;
  readonly pipeline: string;
  readonly kind: LogKind<Segment>;
  readonly parked: TableShape;
  /** The log's name, for messages. */
  readonly table: string;
  readonly nowMs: () => number;
}

/**
 * Writes the outcomes of events: the lane's checkpoint, and the events that wait outside the log. When all were
 * delivered, it is one statement that changes one row, however many events there were.
 */
export async function settleLog<Segment>(
  place: SettleContext<Segment>,
  lane: LogLane<Segment>,
  settlement: Settlement,
): Promise<SettleResult> {
  const { window } = lane;
  const rows: WindowRow<Segment>[] = [];
  const elsewhere: string[] = [];
  for (const id of settlement.delivered) {
    const row = window.waiting(id);
    if (row === undefined) elsewhere.push(id);
    else rows.push(row);
  }
  const parked = rowsToPark(lane, settlement);
  const settled = [...rows, ...parked];
  // Mark the rows before the write, so that the checkpoint passes them; undo it if the write fails.
  for (const row of settled) row.isSettled = true;
  try {
    return await write(place, lane, settlement, { elsewhere, parked });
  } catch (error) {
    for (const row of settled) row.isSettled = false;
    throw error;
  }
}

/** Failed events and suspects. Every held event is parked, so that the checkpoint can pass it. */
function rowsToPark<Segment>({ window }: LogLane<Segment>, { failed, suspects }: Settlement): WindowRow<Segment>[] {
  const ids = new Set([...failed, ...suspects].map(({ id }) => id));
  return [...ids].flatMap((id) => window.waiting(id) ?? []);
}

async function write<Segment>(
  place: SettleContext<Segment>,
  lane: LogLane<Segment>,
  settlement: Settlement,
  { elsewhere, parked }: { readonly elsewhere: readonly string[]; readonly parked: readonly WindowRow<Segment>[] },
): Promise<SettleResult> {
  const { database, kind, nowMs, pipeline } = place;
  const settings = writeSettings(database, "settling", place.table);
  const { low } = lane.window;
  const notes = lane.spentNotes;
  const position = kind.encode(low, lane.ahead());
  const fence = fenceSql(database.tables, pipeline, { ...settlement, log: { position, condition: lane.condition } });
  const { failed, grant, releasedHolds, suspects } = settlement;
  const rest = [elsewhere, failed, notes, releasedHolds, suspects];
  let result: SettleResult = { missing: [] };
  let passed: readonly string[] = [];
  if (rest.every(({ length }) => length === 0)) {
    const written = await statement(database.pool, settings, fence);
    if (written.length === 0) throw fenced(pipeline, grant);
  } else {
    result = await transaction(database.pool, settings, async (session) => {
      if ((await session.rows(fence)).length === 0) throw fenced(pipeline, grant);
      passed = await settleElsewhere(session, database.tables, pipeline, grant.lane, elsewhere);
      await forgetPassed(session, place, grant.lane, notes);
      const scope = { tables: database.tables, pipeline, lane: grant.lane };
      await deleteHolds(session, scope, releasedHolds);
      await park(session, { tables: database.tables, pipeline, kind }, parked);
      await writeSuspects(session, scope, suspects);
      const { gone, dead } = await writeFailures(session, scope, place.parked, failed);
      return { missing: gone, dead };
    });
  }
  lane.notePassed(passed);
  lane.wrote(position, nowMs(), notes);
  kind.settled?.([low]);
  return result;
}

async function forgetPassed<Segment>(
  session: Session,
  { database, pipeline }: SettleContext<Segment>,
  lane: number,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await session.rows(
    `delete from ${database.tables.passed} where pipeline = ${quoteLiteral(pipeline)} and lane = ${lane}
       and event_id = any(${quoteArray(ids)}::text[])`,
  );
}
