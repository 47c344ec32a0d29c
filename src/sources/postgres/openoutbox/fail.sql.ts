import { oursCondition, type QueueScope } from "./openoutbox-table.ts";

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
