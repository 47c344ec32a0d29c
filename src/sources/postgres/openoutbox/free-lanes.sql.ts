import { LOCK_OWNER, laneSql, mineCondition, type QueueScope } from "./openoutbox-table.ts";
import { reapAssignments, reapedColumns } from "./reaped-rows.ts";

/**
 * Releases the claims of these lanes' former owners, and counts an attempt where the owner died and had sent the event.
 * This never makes it dead: many events were sent at the same time, and only an event sent alone is a proven cause (see
 * CRASH_POISON). Takes `$1` lanes, `$2` their former owners, `$3` whether each of them died, `$4` pipeline. Returns
 * `reapedColumns` and whether the event was sent.
 */
export const freeLanesSql = (scope: QueueScope): string => `
with noted as materialized (
  select l.lane, array(select jsonb_array_elements_text(l.position -> 'sending')) as ids
  from ${scope.tables.lanes} l where l.pipeline = $4 and l.lane = any($1::bigint[])),
freed as materialized (
  select f.lane, f.owner, case when f.died then n.ids else '{}' end as sent
  from unnest($1::bigint[], $2::text[], $3::boolean[]) as f (lane, owner, died) join noted n on n.lane = f.lane)
update ${scope.shape.quotedName} t set ${reapAssignments({ isLost: WAS_SENT, attempts: countedSql(scope), isLast: "false" })}
from freed f
where t.status = 'DELIVERING' and ${LOCK_OWNER} = f.owner and ${laneSql(scope)} = f.lane and ${mineCondition(scope)}
returning ${reapedColumns(scope)}, ${WAS_SENT}`;

const WAS_SENT = "(t.event_id::text = any(f.sent))";

function countedSql({ attemptsMax }: QueueScope): string {
  return `least(t.attempts + 1, greatest(t.attempts, ${attemptsMax - 1}))`;
}
