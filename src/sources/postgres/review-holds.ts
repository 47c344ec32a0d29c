import type { Hold } from "../../core/hold.ts";
import type { Grant } from "../../ports/queue-store.ts";
import { readHolds } from "../../postgres/holds.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import { requireGrant, writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { outlastedLocksSql, tryToMark } from "../../postgres/unmarked.ts";
import { dropVoidHoldsSql } from "./drop-void-holds.sql.ts";
import { markAgainSql } from "./mark-again.sql.ts";
import { reviveHoldsSql } from "./revive-holds.sql.ts";
import type { TableShape } from "./table-shape.ts";

/** Each hold is one lookup by primary key. A join that scans the whole table would be cheap only by its estimate. */
export const REVIEW_SETTINGS = { enable_hashjoin: "off", enable_mergejoin: "off", enable_seqscan: "off", jit: "off" };

/**
 * Makes the holds follow what operators and other relays do to the rows. The order matters: rows are marked first, so
 * that their holds can be dropped in the same pass.
 */
export async function reviewHolds(
  database: Database,
  pipeline: string,
  shape: TableShape,
  grant: Grant,
): Promise<readonly Hold[]> {
  const settings = {
    ...writeSettings(database, "reviewing the holds", displayTable(shape.name)),
    settings: REVIEW_SETTINGS,
  };
  return await transaction(database.pool, settings, async (session) => {
    await requireGrant(session, database, pipeline, grant);
    const scope = [pipeline, grant.lane];
    // Where nothing is ever marked, nothing can stay unmarked.
    if (shape.markDelivered !== "") await tryToMark(session, markAgainSql(database.tables, shape), scope);
    if (shape.givenUp !== null) await session.rows(reviveHoldsSql(database.tables, shape), scope);
    await session.rows(dropVoidHoldsSql(database.tables, shape, grant.owner), scope);
    await session.rows(outlastedLocksSql(database), scope);
    return await readHolds(session, database.tables, pipeline, [grant.lane]);
  });
}
