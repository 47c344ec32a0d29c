import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { TableShape } from "./table-shape.ts";

/**
 * Where giving up is written into the row, a dead row that waits again was set back by a person: it is tried again
 * from the start, at once, and is no dead letter any more. Takes `$1` pipeline and `$2` lane.
 */
export const reviveHoldsSql = ({ holds, failedEvents }: RelayTables, shape: TableShape): string => `
with revived as (
  update ${holds} h set state = 'retrying', attempts = 0, crashes = 0, parks = h.event_key is not null,
    next_at = clock_timestamp()
  from ${shape.quotedName} t
  where h.pipeline = $1 and h.lane = $2 and h.state = 'dead'
    and ${shape.id} = h.event_id::${shape.idType} and ${shape.unsettled}
  returning h.event_id)
delete from ${failedEvents} d using revived r where d.pipeline = $1 and d.original_event_id = r.event_id`;
