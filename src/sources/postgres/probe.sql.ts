import { type PendingFilter, type PendingScope, pendingCondition } from "./pending-condition.ts";
import { orderColumns } from "./table-shape.ts";

/**
 * Returns one row when there is something to read. Like a run it asks in order, which keeps the planner on the index:
 * after a large drain the statistics still describe a table full of pending rows. A plain EXISTS would expect to find
 * one at once and would scan the whole table at every poll.
 */
export function probeSql(scope: PendingScope, filter: PendingFilter): string {
  const { shape } = scope;
  return `select 1 from ${shape.quotedName} t where ${pendingCondition(scope, filter)}
order by ${orderColumns(shape).join(", ")} limit 1`;
}
