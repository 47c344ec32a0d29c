import type { Grant, PipelineSpec } from "../../ports/queue-store.ts";
import { grantCondition } from "../../postgres/grant-condition.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { eventColumns, loadedBytes } from "./event-columns.ts";
import { laneSql, lockedBy, type QueueScope } from "./openoutbox-table.ts";
import { type PendingFilter, pendingCondition } from "./pending-condition.ts";

interface ClaimRequest extends PendingFilter {
  readonly spec: PipelineSpec;
  /** Of one owner, one at least. */
  readonly grants: readonly [Grant, ...Grant[]];
  readonly rows: number;
  readonly bytes: number;
  /** False when no index gives the rows in order: then the sort must break ties too. */
  readonly hasOrderIndex: boolean;
}

/**
 * Claims the next events in one statement.
 *
 * `fence` keeps the lanes from changing hands until the commit: FOR KEY SHARE conflicts with the FOR UPDATE of a
 * take-over and not with the settles of the same owner. A lane that changed hands meanwhile is not in it.
 *
 * `picked` walks the index (available_at, created_at), in which equal entries lie in the order of the table. Naming
 * ctid in the ORDER BY would sort the whole group of equal times, which may be a million rows. `ranked` keeps the
 * order and cuts where the bytes are reached. The update finds its rows by ctid, which the locks keep in place.
 */
export function claimSql(scope: QueueScope, request: ClaimRequest): string {
  const { table, tables, pipeline } = scope;
  const { spec, grants, rows, bytes } = request;
  const held = grants.map((grant) => `(${grantCondition(pipeline, grant)})`);
  return `with fence as materialized (
  select l.lane::bigint as lane from ${tables.lanes} l
  where ${held.join(" or ")} for key share),
picked as materialized (
  select t.ctid as place, ${laneSql(scope)} as lane, ${loadedBytes(spec)} as bytes
  from ${table.quotedName} t
  where exists (select from fence) and ${laneSql(scope)} in (select lane from fence)
    and ${pendingCondition(scope, request)}
  order by t.available_at, t.created_at${request.hasOrderIndex ? "" : ", t.ctid"} limit ${rows}
  for update of t skip locked),
ranked as (
  select place, lane, row_number() over () as rank,
    coalesce(sum(bytes) over (rows between unbounded preceding and 1 preceding), 0) as bytes_before
  from picked)
update ${table.quotedName} t set status = 'DELIVERING', locked_by = ${quoteLiteral(lockedBy(scope, grants[0].owner))},
  locked_at = now() + r.rank * interval '1 microsecond', updated_at = now()
from ranked r where t.ctid = r.place and r.bytes_before < ${bytes}
returning ${eventColumns(spec)}`;
}
