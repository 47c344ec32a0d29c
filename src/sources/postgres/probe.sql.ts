import { type PendingFilter, type PendingScope, pendingCondition } from "./pending-condition.ts";

/**
 * One row when there is something to read. Like a run it asks in order, which keeps the planner on the index: after a
 * large drain the statistics still tell of a table full of pending rows, of which a plain EXISTS would expect to meet
 * one at once, and it would read the whole table at every look.
 */
export function probeSql(scope: PendingScope, filter: PendingFilter): string {
  const { shape } = scope;
  return `select 1 from ${shape.quotedName} t where ${pendingCondition(scope, filter)}
order by ${shape.order.column} limit 1`;
}
