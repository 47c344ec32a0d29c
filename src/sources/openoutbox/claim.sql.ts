import type { Grant, PipelineSpec } from "../../ports/queue-store.ts";
import { grantCondition } from "../../postgres/grant-condition.ts";
import { CLAIM_NUMBER_NOW, FORMER_CLAIM_NUMBER, lockedBySql } from "./claim-order.ts";
import { eventColumns, HEADERS_BYTES, LOADED_HEADERS_BYTES, loadedBytes } from "./event-columns.ts";
import { laneSql, type QueueScope } from "./openoutbox-table.ts";
import { type PendingFilter, pendingCondition } from "./pending-condition.ts";

interface ClaimRequest extends PendingFilter {
  readonly spec: PipelineSpec;
  /** Of one owner, one at least. */
  readonly grants: readonly [Grant, ...Grant[]];
  readonly rows: number;
  readonly bytes: number;
  /** How many rows of each lane; null: as many as there are. */
  readonly rooms: ReadonlyMap<number, number> | null;
  /** The highest number that was given to a claim, as far as is known here. */
  readonly lastNumber: number;
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
 * ctid in the ORDER BY would sort the whole group of equal times, which may be a million rows. `roomy` leaves out what
 * its lane has no room for, `ranked` keeps the order and cuts where the bytes are reached. The update finds its rows by
 * ctid, which the locks keep in place.
 */
export function claimSql(scope: QueueScope, request: ClaimRequest): string {
  const { table, tables, pipeline } = scope;
  const { spec, grants, rows, bytes } = request;
  const held = grants.map((grant) => `(${grantCondition(pipeline, grant)})`);
  return `with fence as materialized (
  select l.lane::bigint as lane from ${tables.lanes} l
  where ${held.join(" or ")} for key share),
picked as materialized (
  select t.ctid as place, ${laneSql(scope)} as lane, ${loadedBytes(spec)} as bytes, ${HEADERS_BYTES} as headers_bytes,
    ${FORMER_CLAIM_NUMBER} as former_number
  from ${table.quotedName} t
  where exists (select from fence) and ${laneSql(scope)} in (select lane from fence)
    and ${pendingCondition(scope, request)}
  order by t.available_at, t.created_at${request.hasOrderIndex ? "" : ", t.ctid"} limit ${rows}
  for update of t skip locked),
numbered as materialized (select p.*, row_number() over () as rank from picked p),
roomy as (${roomySql(request.rooms)}),
ranked as (
  select place, lane, rank, headers_bytes,
    greatest(${CLAIM_NUMBER_NOW}, ${request.lastNumber}, max(former_number) over (order by rank)) + rank as number,
    coalesce(sum(bytes + ${LOADED_HEADERS_BYTES}) over (order by rank rows between unbounded preceding and 1 preceding), 0) as bytes_before
  from roomy)
update ${table.quotedName} t set status = 'DELIVERING', locked_by = ${lockedBySql(scope, grants[0].owner, "r.number")},
  locked_at = now(), updated_at = now()
from ranked r where t.ctid = r.place and r.bytes_before < ${bytes}
returning ${eventColumns(spec)}`;
}

function roomySql(rooms: ReadonlyMap<number, number> | null): string {
  if (rooms === null) return "select * from numbered";
  const values = [...rooms].map(([lane, room]) => `(${lane}, ${room})`);
  return `select n.* from (select m.*, row_number() over (partition by m.lane order by m.rank) as place_in_lane
    from numbered m) n join (values ${values.join(", ")}) as v (lane, room) on v.lane = n.lane and n.place_in_lane <= v.room`;
}
