import { eventColumnsSql, eventFromSql } from "./event-columns.ts";
import { type PendingFilter, type PendingScope, pendingCondition } from "./pending-condition.ts";

/**
 * All pending rows in the order of writing, as far as one column shows it; ties are broken page by page in the process.
 * Ordering by more columns would make the server sort everything before the first row.
 */
export function runSql(scope: PendingScope, filter: PendingFilter, payloadBytesMax: number): string {
  return `select ${eventColumnsSql(scope.shape, scope.laneCount, payloadBytesMax)}
from ${eventFromSql(scope.shape, payloadBytesMax)}
where ${pendingCondition(scope, filter)}
order by ${scope.shape.order.column}`;
}
