import { quoteArray } from "../../postgres/identifiers.ts";
import { oursCondition, type QueueScope } from "./openoutbox-table.ts";

/**
 * Prolongs claims that have used up an eighth of their lease; younger ones need no write. Rows that are just being
 * settled are passed over, so that it never waits for a settle nor the other way round.
 */
export const refreshSql = (scope: QueueScope, owner: string, ids: readonly string[], leaseMs: number): string => `
with held as materialized (
  select t.ctid as place from ${scope.table.quotedName} t
  where t.event_id = any(${quoteArray(ids)}::uuid[]) and ${oursCondition(owner)}
    and t.locked_at < now() - ${Math.ceil(leaseMs / 8)} * interval '1 millisecond'
  for update of t skip locked)
update ${scope.table.quotedName} t set locked_at = now(), updated_at = now()
from held h where t.ctid = h.place`;
