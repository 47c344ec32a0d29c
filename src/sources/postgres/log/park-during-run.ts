import { displayTable, type TableName } from "../../../postgres/identifiers.ts";
import { writeSettings } from "../../../postgres/lanes.ts";
import type { Database } from "../../../postgres/pool.ts";
import { transaction } from "../../../postgres/transaction.ts";
import { moveCheckpoint } from "./checkpoints.ts";
import type { WindowRow } from "./lane-window.ts";
import type { LogKind } from "./log-kind.ts";
import type { LogLane } from "./log-lane.ts";
import { park } from "./parked.ts";

interface ParkingContext<Segment> {
  readonly database: Database;
  readonly pipeline: string;
  readonly kind: LogKind<Segment>;
  readonly table: TableName;
}

/**
 * Parks rows that a run has read and must not show. The copies and the checkpoint that passes the rows are one write: a
 * new owner finds each event either in the log or parked, never in both.
 */
export async function parkDuringRun<Segment>(
  { database, kind, pipeline, table }: ParkingContext<Segment>,
  lane: LogLane<Segment>,
  rows: readonly WindowRow<Segment>[],
): Promise<void> {
  const settings = writeSettings(database, "parking events", displayTable(table));
  await lane.inTurn(async () => {
    for (const row of rows) row.isSettled = true;
    const { low } = lane.window;
    const position = kind.encode(low, lane.ahead());
    try {
      await transaction(database.pool, settings, async (session) => {
        await moveCheckpoint(session, database, pipeline, lane, position);
        await park(session, { tables: database.tables, pipeline, kind }, rows);
      });
    } catch (error) {
      for (const row of rows) row.isSettled = false;
      throw error;
    }
    lane.wrote(position, performance.now(), []);
    kind.settled?.([low]);
  });
}
