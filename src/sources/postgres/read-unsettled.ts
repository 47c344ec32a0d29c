import type { LookedAt } from "../../ports/queue-store.ts";
import { displayTable, quoteArray } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { COLUMN, eventColumnsSql, eventFromSql } from "./event-columns.ts";
import type { EventReader } from "./event-reader.ts";
import { readEvents, rowsThatFit } from "./payload-loader.ts";
import type { PendingScope } from "./pending-condition.ts";

/** Payload that one call returns at most, with one event at least. */
const LOOK_BYTES_MAX = 8 * 1024 * 1024;

/** Reads events by id, as they are in the table, held or not. */
export async function readUnsettled(
  database: Database,
  { shape, laneCount }: PendingScope,
  reader: EventReader,
  payloadBytesMax: number,
  ids: readonly string[],
): Promise<LookedAt> {
  if (ids.length === 0) return { events: [], unread: [] };
  const settings = {
    context: database.errorContext("comparing events with the ledger", displayTable(shape.name)),
    statementTimeoutMs: database.timeouts.readMs,
    isolation: "repeatable read" as const,
    readOnly: true,
  };
  return await transaction(database.pool, settings, async (session) => {
    const rows = await session.rows(
      `select ${eventColumnsSql(shape, laneCount, payloadBytesMax)} from ${eventFromSql(shape, payloadBytesMax)}
       where ${shape.id} = any(${quoteArray(ids)}::${shape.idType}[]) and ${shape.unsettled}`,
    );
    const fitting = rowsThatFit(rows, rows.length, LOOK_BYTES_MAX, reader);
    const events = await readEvents(session, shape, reader, rows.slice(0, fitting));
    return { events, unread: rows.slice(fitting).map((row) => row[COLUMN.id] ?? "") };
  });
}
