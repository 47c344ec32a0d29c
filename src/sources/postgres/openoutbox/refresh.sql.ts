import { quoteArray } from "../../../postgres/identifiers.ts";
import { oursCondition, type QueueScope } from "./openoutbox-table.ts";

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
