import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { TableShape } from "./table-shape.ts";

const revived = ({ claims }: TableShape) => claims?.revived ?? "attempts = 0, next_at = clock_timestamp()";

/**
 * Where death is stored in the row, a dead row that is pending again was reset by an operator and is no dead letter any
 * more. It is retried at once from the first attempt, unless the row itself says otherwise. Takes `$1` pipeline and
 * `$2` lane.
 */
export const reviveHoldsSql = ({ holds, failedEvents }: RelayTables, shape: TableShape): string => `
with revived as (
  update ${holds} h set state = 'retrying', crashes = 0, parks = h.event_key is not null, ${revived(shape)}
  from ${shape.quotedName} t
  where h.pipeline = $1 and h.lane = $2 and h.state = 'dead'
    and ${shape.id} = h.event_id::${shape.idType} and ${shape.main}
  returning h.event_id)
delete from ${failedEvents} d using revived r where d.pipeline = $1 and d.original_event_id = r.event_id`;
