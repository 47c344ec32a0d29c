import type { LogPlace } from "../log/log-kind.ts";
import type { Difference } from "./difference.ts";
import { armsOf, filterConditions, isBeginning, type TailScope } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";
import { walkedSql } from "./walked.ts";

/** One row: how many rows of the pipeline lie before these lanes, at most one more than `max`, and the oldest's age. */
export function backlogTailSql(
  scope: TailScope,
  heads: ReadonlyMap<number, LogPlace<Difference>>,
  max: number,
): string {
  const { createdAt } = scope.shape.events;
  const parts = stretchesOf(heads).map((stretch) => {
    const rows = isBeginning(stretch.difference)
      ? walkedSql(scope, stretch, [], Number.MAX_SAFE_INTEGER)
      : `select * from (${armsOf(scope, stretch.difference, stretch.after).join("\n  union all ")}) u offset 0`;
    const conditions = filterConditions(scope, stretch.lanes);
    return `(select ${createdAt} as created_at from (${rows}) t
  ${conditions.length > 0 ? `where ${conditions.join("\n    and ")}` : ""} limit ${max + 1})`;
  });
  return `select count(*), extract(epoch from clock_timestamp() - min(w.created_at)) * 1000
from (select * from (${parts.join("\nunion all ")}) p limit ${max + 1}) w`;
}

/** What lies before the lanes: the rest of the difference that each is in, and everything since. */
function stretchesOf(heads: ReadonlyMap<number, LogPlace<Difference>>): readonly Stretch[] {
  const stretches = new Map<string, Stretch>();
  const add = (difference: Difference, after: number, lane: number) => {
    const key = JSON.stringify([difference.from, difference.to, after]);
    const lanes = [...(stretches.get(key)?.lanes ?? []), lane];
    stretches.set(key, { difference, after, lanes });
  };
  for (const [lane, { segment, mark }] of heads) {
    const { from, to } = segment;
    add({ from, to }, mark, lane);
    if (to !== null) add({ from: to, to: null }, 0, lane);
  }
  return [...stretches.values()];
}
