import type { Hold } from "../../core/hold.ts";
import type { Grant } from "../../ports/queue-store.ts";
import { readHolds } from "../../postgres/holds.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import { requireGrant, writeSettings } from "../../postgres/lanes.ts";
import { transaction } from "../../postgres/transaction.ts";
import { outlastedLocksSql, tryToMark } from "../../postgres/unmarked.ts";
import { BY_ID_SETTINGS, type Queue } from "./claim.ts";
import { dropVoidHoldsSql } from "./drop-void-holds.sql.ts";
import { markAgainSql } from "./mark-again.sql.ts";
import { reviveHoldsSql } from "./revive-holds.sql.ts";

/** Holds follow what people and other relays do to the rows. */
export async function reviewHolds({ database, scope }: Queue, grant: Grant): Promise<readonly Hold[]> {
  const { table, tables, pipeline } = scope;
  const settings = {
    ...writeSettings(database, "reviewing the holds", displayTable(table.name)),
    settings: BY_ID_SETTINGS,
  };
  return await transaction(database.pool, settings, async (session) => {
    await requireGrant(session, database, pipeline, grant);
    const ofLane = [pipeline, grant.lane];
    await tryToMark(session, markAgainSql(scope), ofLane);
    await session.rows(reviveHoldsSql(scope), ofLane);
    await session.rows(dropVoidHoldsSql(scope, grant.owner), ofLane);
    await session.rows(outlastedLocksSql(database), ofLane);
    return await readHolds(session, tables, pipeline, [grant.lane]);
  });
}
