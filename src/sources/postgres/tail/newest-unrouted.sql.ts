import type { TypeRule } from "../../../ports/queue-store.ts";
import { typeCondition } from "../../../postgres/type-condition.ts";
import type { TailShape } from "./tail-shape.ts";

const COUNT_MAX = 1_000;
const TYPES_MAX = 1_000;
const NEWEST = 10_000;

/** Types among the newest rows that match no rule. */
export function newestUnroutedSql(
  { events, position }: TailShape,
  ruleLists: readonly (readonly TypeRule[])[],
): string {
  const unmatched = ruleLists.map((rules) => typeCondition(events, rules, "unmatched")).join(" and ");
  return `select type, least(count(*), ${COUNT_MAX}) from (
  select ${events.eventType} as type from (
    select * from ${events.quotedName} t order by ${position} desc limit ${NEWEST}) t
  where ${unmatched || "true"}) u
group by type order by type limit ${TYPES_MAX}`;
}
