import type { Settlement } from "../../../ports/queue-store.ts";
import { fenceSql } from "../../../postgres/fence.sql.ts";
import { quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import { GIVE_BACK } from "./claim-order.ts";
import { MARK_DELIVERED, oursCondition, type QueueScope } from "./openoutbox-table.ts";

/**
 * Raises the lane's batch, marks the delivered rows, releases unsent rows and deletes holds; or changes nothing when
 * the fence has no row. Only rows that are still ours are touched, with one exception: rows that a former owner
 * delivered are marked in any state, since they may have been released or have died with their owner. Returns one row:
 * the number of fences (0 or 1), and the marked ids as JSON only when some are missing. A row counts as marked by its
 * state after the update.
 */
export function markSql(scope: QueueScope, settlement: Settlement): string {
  const { shape, tables, pipeline } = scope;
  const { grant, delivered, handedBack, ledger, releasedHolds } = settlement;
  const ours = (ids: readonly string[]) =>
    `from fence where t.event_id = any(${quoteArray(ids)}::uuid[]) and ${oursCondition(grant.owner)}`;
  const parts = [`fence as (${fenceSql(tables, pipeline, settlement)})`];
  if (delivered.length > 0) {
    const those = ledger === "heal" ? unmarked(delivered) : ours(delivered);
    parts.push(
      `updated as (
  update ${shape.quotedName} t set ${MARK_DELIVERED}
  ${those} returning t.event_id as id, t.status = 'DELIVERED' as is_marked)`,
      "marked as (select id from updated where is_marked)",
    );
    if (ledger === "heal") parts.push(`buried as (${deleteDeadLettersSql(scope)})`);
  }
  if (handedBack.length > 0) {
    parts.push(`handed_back as (
  update ${shape.quotedName} t set status = 'PENDING', ${GIVE_BACK} ${ours(handedBack)})`);
  }
  if (releasedHolds.length > 0) {
    parts.push(`released as (
  delete from ${tables.holds} h using fence
  where h.pipeline = ${quoteLiteral(pipeline)} and h.event_id = any(${quoteArray(releasedHolds)}::text[]))`);
  }
  const marked = `case when (select count(*) from marked) <> ${delivered.length}
    then (select coalesce(json_agg(id), '[]') from marked)::text end`;
  return `with ${parts.join(",\n")}
select (select count(*) from fence), ${delivered.length > 0 ? marked : "null"}`;
}

function unmarked(ids: readonly string[]): string {
  return `from fence where t.event_id = any(${quoteArray(ids)}::uuid[]) and t.status <> 'DELIVERED'`;
}

function deleteDeadLettersSql({ tables, pipeline }: QueueScope): string {
  return `delete from ${tables.failedEvents} f using marked
  where f.pipeline = ${quoteLiteral(pipeline)} and f.original_event_id = marked.id::text`;
}

/**
 * Writes failures into their rows and returns the ids that were still ours. A pending row also counts as ours when it
 * has a hold and becomes dead: an event that keeps crashing the relay dies without another claim. Takes `$1` pipeline,
 * `$2` ids, `$3` reasons, `$4` attempts, `$5` delays in ms (null for the dead).
 */
export const failSql = (scope: QueueScope, owner: string): string => `
update ${scope.shape.quotedName} t set
  status = case when f.delay_ms is null then 'DEAD' else 'PENDING' end,
  attempts = greatest(t.attempts, f.attempts), last_error = f.reason,
  available_at = case when f.delay_ms is null then t.available_at else now() + f.delay_ms * interval '1 millisecond' end,
  locked_by = null, locked_at = null, updated_at = now()
from unnest($2::uuid[], $3::text[], $4::int[], $5::bigint[]) as f (id, reason, attempts, delay_ms)
where t.event_id = f.id and t.event_id = any($2::uuid[]) and ((${oursCondition(owner)}) or (
  t.status = 'PENDING' and f.delay_ms is null and exists (
    select from ${scope.tables.holds} h where h.pipeline = $1 and h.event_id = t.event_id::text)))
returning t.event_id`;
