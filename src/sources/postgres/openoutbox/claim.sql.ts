import type { Grant, PipelineSpec } from "../../../ports/queue-store.ts";
import { grantCondition } from "../../../postgres/grant-condition.ts";
import { quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import { pendingCondition } from "../pending-condition.ts";
import { CLAIM_NUMBER_NOW, FORMER_CLAIM_NUMBER, lockedBySql } from "./claim-order.ts";
import { eventColumns, HEADERS_BYTES, LOADED_HEADERS_BYTES, loadedBytes } from "./event-columns.ts";
import { laneSql, oursCondition, type QueueScope } from "./openoutbox-table.ts";

interface ClaimRequest {
  readonly exceptKeys: readonly string[];
  readonly exceptTypes: readonly string[];
  readonly spec: PipelineSpec;
  /** All of one owner, at least one. */
  readonly grants: readonly [Grant, ...Grant[]];
  readonly rows: number;
  readonly bytes: number;
  /** The room of each lane; null: no limit. */
  readonly rooms: ReadonlyMap<number, number> | null;
  /** The highest claim number that this instance knows. */
  readonly lastNumber: number;
  /** False without an index in order: then the sort must break ties too. */
  readonly hasOrderIndex: boolean;
}

/**
 * Claims the next events in one statement.
 *
 * `fence` keeps the lanes from changing their owner until the commit: FOR KEY SHARE conflicts with the FOR UPDATE of a
 * takeover, but not with the settles of the same owner. A lane that has a new owner is not in it.
 *
 * `picked` walks the index (available_at, created_at), where equal entries are in the table's order. With ctid in the
 * ORDER BY the server would sort the whole group of equal times, which can be a million rows. `roomy` drops rows that
 * exceed their lane's room, `ranked` keeps the order and cuts at the byte limit. The update finds its rows by ctid,
 * which the locks keep stable.
 */
export function claimSql(scope: QueueScope, request: ClaimRequest): string {
  const { shape, tables, pipeline } = scope;
  const { spec, grants, rows, bytes, exceptKeys, exceptTypes } = request;
  const held = grants.map((grant) => `(${grantCondition(pipeline, grant)})`);
  return `with fence as materialized (
  select l.lane::bigint as lane from ${tables.lanes} l
  where ${held.join(" or ")} for key share),
picked as materialized (
  select t.ctid as place, ${laneSql(scope)} as lane, ${loadedBytes(spec)} as bytes, ${HEADERS_BYTES} as headers_bytes,
    ${FORMER_CLAIM_NUMBER} as former_number
  from ${shape.quotedName} t
  where exists (select from fence) and ${laneSql(scope)} in (select lane from fence)
    and ${pendingCondition(scope, { rows: "main", lanes: "all", holds: { ids: true, keys: true }, exceptKeys, exceptTypes })}
  order by t.available_at, t.created_at${request.hasOrderIndex ? "" : ", t.ctid"} limit ${rows}
  for update of t skip locked),
numbered as materialized (select p.*, row_number() over () as rank from picked p),
roomy as (${roomySql(request.rooms)}),
ranked as (
  select place, lane, rank, headers_bytes,
    greatest(${CLAIM_NUMBER_NOW}, ${request.lastNumber}, max(former_number) over (order by rank)) + rank as number,
    coalesce(sum(bytes + ${LOADED_HEADERS_BYTES}) over (order by rank rows between unbounded preceding and 1 preceding), 0) as bytes_before
  from roomy)
update ${shape.quotedName} t set status = 'DELIVERING', locked_by = ${lockedBySql(scope, grants[0].owner, "r.number")},
  locked_at = now(), updated_at = now()
from ranked r where t.ctid = r.place and r.bytes_before < ${bytes}
returning ${eventColumns(scope, spec)}`;
}

function roomySql(rooms: ReadonlyMap<number, number> | null): string {
  if (rooms === null) return "select * from numbered";
  const values = [...rooms].map(([lane, room]) => `(${lane}, ${room})`);
  return `select n.* from (select m.*, row_number() over (partition by m.lane order by m.rank) as place_in_lane
    from numbered m) n join (values ${values.join(", ")}) as v (lane, room) on v.lane = n.lane and n.place_in_lane <= v.room`;
}

/**
 * Payload that one call loads at most, with one event at least. Events that do not fit stay due; the engine asks again.
 */
const HEADS_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Claims held events that are due, including those that are already claimed by this owner: a failover can restore such
 * a claim. Locked rows are skipped until the next time.
 */
export function claimHeadsSql(scope: QueueScope, spec: PipelineSpec, grant: Grant, ids: readonly string[]): string {
  const { shape, tables, pipeline } = scope;
  return `with picked as materialized (
  select t.event_id as id, ${loadedBytes(spec)} as bytes, ${HEADERS_BYTES} as headers_bytes
  from ${shape.quotedName} t
  left join ${tables.holds} h on h.pipeline = ${quoteLiteral(pipeline)} and h.event_id = t.event_id::text
    and h.event_id = any(${quoteArray(ids)}::text[])
  where t.event_id = any(${quoteArray(ids)}::uuid[])
    and ((t.status = 'PENDING' and t.available_at <= now()) or (${oursCondition(grant.owner)}))
    and h.state is distinct from 'dead' and coalesce(h.next_at <= clock_timestamp(), true)
  order by h.next_at for update of t skip locked),
r as (
  select id, ${grant.lane} as lane, headers_bytes, row_number() over () as rank, ${CLAIM_NUMBER_NOW} + row_number() over () as number,
    coalesce(sum(bytes + ${LOADED_HEADERS_BYTES}) over (rows between unbounded preceding and 1 preceding), 0) as bytes_before
  from picked)
update ${shape.quotedName} t set status = 'DELIVERING', locked_by = ${lockedBySql(scope, grant.owner, "r.number")},
  locked_at = now(), updated_at = now()
from r where t.event_id = r.id and r.bytes_before < ${HEADS_BYTES_MAX}
returning ${eventColumns(scope, spec)}`;
}

/** The held ids that are void: the row is gone, or another relay delivered it, claimed it or made it dead. */
export function findGoneSql(scope: QueueScope, owner: string, ids: readonly string[]): string {
  const { shape, tables, pipeline } = scope;
  return `select a.id from unnest(${quoteArray(ids)}::text[]) as a (id)
left join ${shape.quotedName} t on t.event_id = a.id::uuid
left join ${tables.holds} h on h.pipeline = ${quoteLiteral(pipeline)} and h.event_id = a.id
where t.event_id is null or not (t.status = 'PENDING'
  or (t.status = 'DEAD' and h.state is not distinct from 'dead') or coalesce(${oursCondition(owner)}, false))`;
}

/**
 * Renews claims that have used an eighth of their lease; younger claims need no write. Rows that are being settled are
 * skipped, so that a renewal and a settle never wait for each other.
 */
export const refreshSql = (scope: QueueScope, owner: string, ids: readonly string[], leaseMs: number): string => `
with held as materialized (
  select t.ctid as place from ${scope.shape.quotedName} t
  where t.event_id = any(${quoteArray(ids)}::uuid[]) and ${oursCondition(owner)}
    and t.locked_at < now() - ${Math.ceil(leaseMs / 8)} * interval '1 millisecond'
  for update of t skip locked)
update ${scope.shape.quotedName} t set locked_at = now(), updated_at = now()
from held h where t.ctid = h.place`;
