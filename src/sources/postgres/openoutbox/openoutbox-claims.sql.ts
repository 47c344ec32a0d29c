import { quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import { GIVE_BACK } from "./claim-order.ts";
import { LOCK_OWNER, laneSql, mineCondition, oursCondition, type QueueScope } from "./openoutbox-table.ts";
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

/** The response to a claim never takes this long to reach its owner, however short the lease is. */
const FORGOTTEN_MS_MIN = 60_000;

/**
 * Releases claims under our name that this instance does not know and that are too old for their response to be on its
 * way.
 */
export const releaseForgottenSql = (
  scope: QueueScope,
  owner: string,
  ids: readonly string[],
  leaseMs: number,
): string => `
update ${scope.shape.quotedName} t set status = 'PENDING', ${GIVE_BACK}
where t.status = 'DELIVERING' and ${oursCondition(owner)} and ${mineCondition(scope)}
  and t.locked_at < now() - ${Math.ceil(Math.max(leaseMs, FORGOTTEN_MS_MIN))} * interval '1 millisecond'
  and t.event_id not in (select unnest(${quoteArray(ids)}::uuid[]))`;
