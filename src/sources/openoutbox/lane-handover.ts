import type { Grant, Takeover } from "../../ports/queue-store.ts";
import { grantCondition } from "../../postgres/grant-condition.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import { type TakenLane, takeOver, writeSettings } from "../../postgres/lanes.ts";
import { releaseLaneSql } from "../../postgres/release-lane.sql.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import type { Queue } from "./claim.ts";
import { freeLanesSql } from "./free-lanes.sql.ts";
import type { QueueScope } from "./openoutbox-table.ts";
import { noteReaped } from "./reaped-rows.ts";

/** What the former owner had claimed is given back in the transaction in which the lane changes hands. */
export function takeLanes(
  { database, scope }: Queue,
  owner: string,
  lanes: readonly number[],
  mayTake: (session: Session) => Promise<void>,
): Promise<readonly Takeover[]> {
  const onTaken = (session: Session, taken: readonly TakenLane[]) => freeLanes(session, scope, taken);
  return takeOver(database, scope, owner, lanes, { mayTake, onTaken });
}

/**
 * Gives the lane up together with what is still claimed in it. FOR UPDATE waits for a claim that is under way, so that
 * its rows are seen; a grant that is gone changes nothing.
 */
export async function releaseLane(
  { database, scope }: Queue,
  grant: Grant,
  suspects: readonly string[],
): Promise<void> {
  const condition = grantCondition(scope.pipeline, grant);
  const settings = writeSettings(database, "releasing a lane", displayTable(scope.table.name));
  await transaction(database.pool, settings, async (session) => {
    const rows = await session.rows(`select 1 from ${scope.tables.lanes} where ${condition} for update`);
    if (rows.length === 0) return;
    await freeLanes(session, scope, [{ lane: grant.lane, formerOwner: grant.owner, died: false }]);
    await session.rows(releaseLaneSql(scope.tables, scope.pipeline, grant, suspects));
  });
}

async function freeLanes(session: Session, scope: QueueScope, taken: readonly TakenLane[]): Promise<void> {
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
