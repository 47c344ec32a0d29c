import { armsOf, filterConditions, isBeginning, type TailScope } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";
import { WHOLE, walkedSql } from "./walked.ts";

/**
 * Returns one row: the number of the pipeline's unread rows, at most one more than `max`, and the age of the oldest.
 */
export function backlogTailSql(scope: TailScope, stretches: readonly Stretch[], max: number): string {
  const { createdAt } = scope.shape.events;
  const parts = stretches.map((stretch) => {
    const rows = isBeginning(stretch.difference)
      ? walkedSql(scope, stretch, WHOLE, Number.MAX_SAFE_INTEGER)
      : `select * from (${armsOf(scope, stretch.difference, stretch.after).join("\n  union all ")}) u offset 0`;
    const conditions = filterConditions(scope, stretch.lanes);
    return `(select ${createdAt} as created_at from (${rows}) t
  ${conditions.length > 0 ? `where ${conditions.join("\n    and ")}` : ""} limit ${max + 1})`;
  });
  return `select count(*), extract(epoch from clock_timestamp() - min(w.created_at)) * 1000
from (select * from (${parts.join("\nunion all ")}) p limit ${max + 1}) w`;
}
