import { unmarkedSql } from "../../postgres/unmarked.ts";
import { oursCondition, type QueueScope } from "./openoutbox-table.ts";

/**
 * Deletes holds whose row is gone, or was delivered, buried or claimed by somebody else. A dead one stays while its
 * row is dead, one that could not be marked until its row is; its dead letter stays in any case, it may be the only copy. Takes `$1` pipeline and `$2` lane.
 */
export const dropVoidHoldsSql = (scope: QueueScope, owner: string): string => `
delete from ${scope.tables.holds} h where h.pipeline = $1 and h.lane = $2 and not exists (
  select from ${scope.table.quotedName} t where t.event_id = h.event_id::uuid
    and (t.status = 'PENDING' or (t.status = 'DEAD' and h.state = 'dead') or (${oursCondition(owner)})
      or (t.status = 'DELIVERING' and ${unmarkedSql("h.")} is not null)))`;
