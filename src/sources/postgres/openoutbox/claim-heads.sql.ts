import type { Grant, PipelineSpec } from "../../../ports/queue-store.ts";
import { quoteArray, quoteLiteral } from "../../../postgres/identifiers.ts";
import { CLAIM_NUMBER_NOW, lockedBySql } from "./claim-order.ts";
import { eventColumns, HEADERS_BYTES, LOADED_HEADERS_BYTES, loadedBytes } from "./event-columns.ts";
import { oursCondition, type QueueScope } from "./openoutbox-table.ts";

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
