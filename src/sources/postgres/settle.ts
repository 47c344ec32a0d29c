import type { Settlement, SettleResult } from "../../ports/queue-store.ts";
import { deleteHolds, failureColumns, writeFailures, writeSuspects } from "../../postgres/holds.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import { fenced, writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row, Session } from "../../postgres/session.ts";
import { statement, transaction } from "../../postgres/transaction.ts";
import { markSql } from "./mark.sql.ts";
import type { TableShape } from "./table-shape.ts";

/** By its estimate the planner would rather read a table of 60,000 rows than look 500 of them up, ten times as slow. */
export const SETTLE_SETTINGS = { enable_seqscan: "off", jit: "off" };

/**
 * Writes what became of claimed events. When all were delivered it is one statement in one round trip: the fence in it
 * makes it change nothing once the lane has changed hands. Everything else follows in the same transaction, behind the
 * fence's lock on the lane's row.
 */
export async function settle(
  database: Database,
  pipeline: string,
  shape: TableShape,
  settlement: Settlement,
): Promise<SettleResult> {
  const settings = { ...writeSettings(database, "settling", displayTable(shape.name)), settings: SETTLE_SETTINGS };
  const mark = markSql(database.tables, pipeline, shape, settlement);
  const { failed, releasedHolds, suspects } = settlement;
  if (failed.length === 0 && releasedHolds.length === 0 && suspects.length === 0) {
    const [row] = await statement(database.pool, settings, mark);
    return { missing: missingOf(row, pipeline, settlement) };
  }
  return await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows(mark);
    const missing = missingOf(row, pipeline, settlement);
    const scope = { tables: database.tables, pipeline, lane: settlement.grant.lane };
    await deleteHolds(session, scope, releasedHolds);
    await writeSuspects(session, scope, suspects);
    const { gone, dead } = await writeFailures(session, scope, shape, failed);
    await noteFailures(session, shape, settlement);
    return { missing: [...missing, ...gone], dead };
  });
}

function missingOf(row: Row | undefined, pipeline: string, { grant, delivered }: Settlement): readonly string[] {
  if (row?.[0] !== "1") throw fenced(pipeline, grant);
  if (row[1] == null && (row[2] === undefined || Number(row[2]) === delivered.length)) return [];
  const marked: unknown = JSON.parse(row[1] ?? "[]");
  const ids = new Set(Array.isArray(marked) ? marked : []);
  return delivered.filter((id) => !ids.has(id));
}

/** Into the rows themselves, where they have columns for it. Last, since it may end the row's waiting. */
async function noteFailures(session: Session, shape: TableShape, { failed }: Settlement): Promise<void> {
  if (failed.length === 0 || shape.markFailed === null) return;
  await session.rows(
    `update ${shape.quotedName} t set ${shape.markFailed}
     from unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::boolean[])
       as f (id, key, reason, attempts, delay_ms, parks)
     where ${shape.id} = f.id::${shape.idType} and ${shape.id} = any($1::text[]::${shape.idType}[])
       and ${shape.unsettled}`,
    failureColumns(failed),
  );
}
