import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { TableShape } from "./table-shape.ts";

/**
 * Deletes holds whose row is gone or was marked by somebody else. A dead one stays while its row waits or is given up;
 * its dead letter stays in any case, it may be the only copy. Takes `$1` pipeline and `$2` lane.
 */
export const dropVoidHoldsSql = ({ holds }: RelayTables, shape: TableShape): string => {
  const givenUp = shape.givenUp === null ? "" : ` or (h.state = 'dead' and ${shape.givenUp})`;
  return `delete from ${holds} h where h.pipeline = $1 and h.lane = $2 and not exists (
  select from ${shape.quotedName} t
  where ${shape.id} = h.event_id::${shape.idType} and (${shape.unsettled}${givenUp}))`;
};
