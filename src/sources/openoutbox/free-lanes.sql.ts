import { LOCK_OWNER, laneSql, mineCondition, type QueueScope } from "./openoutbox-table.ts";
import { reapAssignments, reapedColumns } from "./reaped-rows.ts";

/**
 * Gives back what the former owners of these lanes had claimed, with an attempt counted for those who died. Takes `$1`
 * lanes, `$2` their former owners, `$3` who of them died. Returns `reapedColumns` and whether the owner died.
 */
export const freeLanesSql = (scope: QueueScope): string => `
update ${scope.table.quotedName} t set ${reapAssignments(scope, "f.died")}
from unnest($1::bigint[], $2::text[], $3::boolean[]) as f (lane, owner, died)
where t.status = 'DELIVERING' and ${LOCK_OWNER} = f.owner and ${laneSql(scope)} = f.lane and ${mineCondition(scope)}
returning ${reapedColumns(scope)}, f.died`;
