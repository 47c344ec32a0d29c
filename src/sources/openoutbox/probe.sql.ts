import { laneSql, type QueueScope } from "./openoutbox-table.ts";
import { pendingCondition } from "./pending-condition.ts";

/**
 * One row when there is something to claim. Like a claim it asks in order, which keeps the planner on the index however
 * old its statistics are.
 */
export function probeSql(scope: QueueScope, lanes: readonly number[]): string {
  const isAll = new Set(lanes).size === scope.laneCount;
  const inLanes = isAll ? "true" : `${laneSql(scope)} in (${lanes.join(", ")})`;
  return `select 1 from ${scope.table.quotedName} t
where ${pendingCondition(scope, { exceptKeys: [], exceptTypes: [] })} and ${inLanes}
order by t.available_at, t.created_at limit 1`;
}
