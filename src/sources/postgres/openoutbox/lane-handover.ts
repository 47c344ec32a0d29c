import type { Grant } from "../../../ports/queue-store.ts";
import { grantCondition } from "../../../postgres/grant-condition.ts";
import { displayTable } from "../../../postgres/identifiers.ts";
import { releaseLaneSql } from "../../../postgres/lanes.sql.ts";
import { type TakenLane, writeSettings } from "../../../postgres/lanes.ts";
import type { Session } from "../../../postgres/session.ts";
import { transaction } from "../../../postgres/transaction.ts";
import type { Queue } from "./claim.ts";
import { freeLanesSql } from "./openoutbox-claims.sql.ts";
import type { QueueScope } from "./openoutbox-table.ts";
import { noteReaped } from "./reaped-rows.ts";

/**
 * Releases the lane together with its claims. FOR UPDATE waits for a running claim, so that its rows are seen. An
 * outdated grant changes nothing.
 */
export async function releaseLane(
  { database, scope }: Queue,
  grant: Grant,
  suspects: readonly string[],
): Promise<void> {
  const condition = grantCondition(scope.pipeline, grant);
  const settings = writeSettings(database, "releasing a lane", displayTable(scope.shape.name));
  await transaction(database.pool, settings, async (session) => {
    const rows = await session.rows(`select 1 from ${scope.tables.lanes} where ${condition} for update`);
    if (rows.length === 0) return;
    await freeLanes(session, scope, [{ lane: grant.lane, formerOwner: grant.owner, died: false }]);
    await session.rows(releaseLaneSql(scope.tables, scope.pipeline, grant, suspects));
  });
}

/** Releases the claims of the former owners, in the transaction in which their lanes change their owner. */
export async function freeLanes(session: Session, scope: QueueScope, taken: readonly TakenLane[]): Promise<void> {
  const owned = taken.filter(({ formerOwner }) => formerOwner !== null);
  if (owned.length === 0) return;
  const columns = [
    owned.map(({ lane }) => lane),
    owned.map(({ formerOwner }) => formerOwner),
    owned.map(({ died }) => died),
    scope.pipeline,
  ];
  const rows = await session.rows(freeLanesSql(scope), columns);
  await session.rows(`update ${scope.tables.lanes} set position = null where pipeline = $1 and lane = any($2::int[])`, [
    scope.pipeline,
    owned.map(({ lane }) => lane),
  ]);
  await noteReaped(
    session,
    scope,
    rows.filter((row) => row[6] === "t"),
  );
}
