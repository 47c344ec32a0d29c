import type { QueueScope } from "./openoutbox-table.ts";

/**
 * A dead row that waits again was set back by a person: it is tried again with the attempts that the row says, and is
 * no dead letter any more. Takes `$1` pipeline and `$2` lane.
 */
export const reviveHoldsSql = ({ table, tables }: QueueScope): string => `
with revived as (
  update ${tables.holds} h set state = 'retrying', attempts = t.attempts, crashes = 0, parks = h.event_key is not null,
    next_at = greatest(clock_timestamp(), t.available_at)
  from ${table.quotedName} t
  where h.pipeline = $1 and h.lane = $2 and h.state = 'dead' and t.event_id = h.event_id::uuid and t.status = 'PENDING'
  returning h.event_id)
delete from ${tables.failedEvents} d using revived r where d.pipeline = $1 and d.original_event_id = r.event_id`;
