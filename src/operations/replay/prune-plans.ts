import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";

const KEPT_DAYS = 30;
/** A plan may have half a million items, which are deleted with it. */
const AT_ONCE = 1;

/**
 * Deletes plans that ended, or were created and never started, a month ago; the audit keeps their entries. Returns how
 * many.
 */
export async function prunePlans(database: Database): Promise<number> {
  const { replayPlans } = database.tables;
  for (let count = 0; ; count += AT_ONCE) {
    const rows = await transaction(database.pool, writeSettings(database, "forgetting old plans"), (session) =>
      session.rows(
        `delete from ${replayPlans} where id in (
           select id from ${replayPlans} where state in ('planned', 'stopped', 'done', 'cancelled')
             and coalesce(finished_at, created_at) < clock_timestamp() - interval '${KEPT_DAYS} days'
           order by created_at limit ${AT_ONCE} for update skip locked) returning id`,
      ),
    );
    if (rows.length < AT_ONCE) return count;
  }
}
