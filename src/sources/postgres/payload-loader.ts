import type { ClaimedEvent } from "../../ports/queue-store.ts";
import { quoteArray } from "../../postgres/identifiers.ts";
import type { Row, Session } from "../../postgres/session.ts";
import { COLUMN, leftOutColumnsSql } from "./event-columns.ts";
import type { EventReader, LeftOut } from "./event-reader.ts";
import type { TableShape } from "./table-shape.ts";

/**
 * How many of the rows form a page: at most `rowsMax`, and no more once `bytesMax` is reached, counting what still has
 * to be loaded. At least one, if there is one.
 */
export function rowsThatFit(rows: readonly Row[], rowsMax: number, bytesMax: number, reader: EventReader): number {
  let bytes = 0;
  for (let index = 0; index < rows.length && index < rowsMax; index++) {
    bytes += reader.bytesOf(rows[index]!);
    if (bytes >= bytesMax) return index + 1;
  }
  return Math.min(rows.length, rowsMax);
}

/** Turns rows into events, with the payloads and headers that the rows left out because of their size. */
export async function readEvents(
  session: Session,
  shape: TableShape,
  reader: EventReader,
  rows: readonly Row[],
  failuresOf: (row: Row) => number | null = () => null,
): Promise<ClaimedEvent[]> {
  const ids = rows.filter((row) => reader.bytesToLoad(row) > 0).map((row) => row[COLUMN.id] ?? "");
  const loaded = ids.length === 0 ? null : await load(session, shape, ids, reader.payloadBytesMax);
  return rows.map((row) => reader.read(row, loaded?.get(row[COLUMN.id] ?? "") ?? null, failuresOf(row)));
}

/** Runs in the run's transaction, so it reads the same snapshot: the rows are still there. */
async function load(
  session: Session,
  shape: TableShape,
  ids: readonly string[],
  payloadBytesMax: number,
): Promise<Map<string, LeftOut>> {
  const rows = await session.rows(
    `select ${shape.idText}, ${leftOutColumnsSql(shape, payloadBytesMax)} from ${shape.quotedName} t
     where ${shape.id} = any(${quoteArray(ids)}::${shape.idType}[])`,
  );
  return new Map(rows.map((row) => [row[0] ?? "", { payload: row[1] ?? null, headers: row[2] ?? null }]));
}
