import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { LOCK_OWNER, mineCondition, type QueueScope } from "./openoutbox-table.ts";
import { reapAssignments, reapedColumns } from "./reaped-rows.ts";

const lostToAnother = ({ attemptsMax }: QueueScope) => ({
  isLost: "true",
  attempts: "t.attempts + 1",
  isLast: `t.attempts + 1 >= ${attemptsMax}`,
});

/**
 * Releases claims that are older than their lease and that no instance of ours holds: those of other relays that died,
 * or of rows locked without a name. An instance counts as alive until its row is deleted. The claims of a dead one are
 * freed with its lanes, where it is known which events it had sent. A claim without a time has no lease.
 */
export const reapStaleSql = (scope: QueueScope, leaseMs: number, rows: number): string => `
with stale as materialized (
  select t.ctid as place from ${scope.shape.quotedName} t
  where t.status = 'DELIVERING' and ${mineCondition(scope)}
    and (t.locked_at is null or t.locked_at < now() - ${Math.ceil(leaseMs)} * interval '1 millisecond')
    and (t.locked_by is null or ${LOCK_OWNER} not in (select i.id::text from ${scope.tables.instances} i
      union select l.owner::text from ${scope.tables.lanes} l
        where l.pipeline = ${quoteLiteral(scope.pipeline)} and l.owner is not null))
  order by t.locked_at limit ${Math.max(0, Math.floor(rows))} for update of t skip locked)
update ${scope.shape.quotedName} t set ${reapAssignments(lostToAnother(scope))}
from stale s where t.ctid = s.place
returning ${reapedColumns(scope)}`;
