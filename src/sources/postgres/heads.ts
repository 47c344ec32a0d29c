import type { Grant, Heads } from "../../ports/queue-store.ts";
import { displayTable, quoteArray } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { COLUMN, eventColumnsSql, eventFromSql } from "./event-columns.ts";
import type { EventReader } from "./event-reader.ts";
import { readEvents, rowsThatFit } from "./payload-loader.ts";
import type { PendingScope } from "./pending-condition.ts";

interface HeadsRequest {
  readonly scope: PendingScope;
  readonly reader: EventReader;
  readonly payloadBytesMax: number;
  readonly grant: Grant;
  readonly ids: readonly string[];
}

/** Payload that one call returns at most, with one event at least. */
const HEADS_BYTES_MAX = 8 * 1024 * 1024;

/** Reads held events by id, without claiming them: the fence in their settle decides whether they are still ours. */
export async function claimHeads(database: Database, request: HeadsRequest): Promise<Heads> {
  const { scope, reader, grant, ids, payloadBytesMax } = request;
  if (ids.length === 0) return { events: [], gone: [] };
  const { shape, laneCount } = scope;
  const settings = {
    context: database.errorContext("reading held events", displayTable(shape.name)),
    statementTimeoutMs: database.timeouts.readMs,
    isolation: "repeatable read" as const,
    readOnly: true,
  };
  return await transaction(database.pool, settings, async (session) => {
    const holds = await session.rows(
      `select event_id, attempts, state <> 'dead' and coalesce(next_at <= clock_timestamp(), true)
       from ${database.tables.holds} where pipeline = $1 and lane = $2 and event_id = any($3::text[])`,
      [scope.pipeline, grant.lane, ids],
    );
    const holdOf = new Map(holds.map((row) => [row[0] ?? "", row]));
    const rows = await session.rows(
      `select ${eventColumnsSql(shape, laneCount, payloadBytesMax)} from ${eventFromSql(shape, payloadBytesMax)}
       where ${shape.id} = any(${quoteArray(ids)}::${shape.idType}[]) and ${shape.unsettled}`,
    );
    const rowOf = new Map(rows.map((row) => [row[COLUMN.id] ?? "", row]));
    const due = ids.flatMap((id) => {
      const row = rowOf.get(id);
      return row && holdOf.get(id)?.[2] === "t" ? [row] : [];
    });
    // Events that do not fit stay due; the engine asks again.
    const fitting = due.slice(0, rowsThatFit(due, due.length, HEADS_BYTES_MAX, reader));
    const failuresOf = (row: Row) => Number(holdOf.get(row[COLUMN.id] ?? "")?.[1] ?? 0);
    const events = await readEvents(session, shape, reader, fitting, failuresOf);
    return { events, gone: ids.filter((id) => !holdOf.has(id) || isGone(id, rowOf, holdOf)) };
  });
}

/** The row of a dead hold can be dead in the table itself: it is settled then, but not gone. */
function isGone(id: string, rowOf: ReadonlyMap<string, Row>, holdOf: ReadonlyMap<string, Row>): boolean {
  return !rowOf.has(id) && holdOf.get(id)?.[2] === "t";
}
