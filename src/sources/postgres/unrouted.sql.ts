import type { TypeRule } from "../../ports/queue-store.ts";
import { typeCondition } from "../../postgres/type-condition.ts";
import type { TableShape } from "./table-shape.ts";

const COUNT_MAX = 1_000;
const TYPES_MAX = 1_000;
/** Enough to tell the types apart without counting a backlog of millions. */
const ROWS_MAX = 100_000;

/** Types of waiting rows that no rule matches. */
export function unroutedSql(shape: TableShape, ruleLists: readonly (readonly TypeRule[])[]): string {
  const unmatched = ruleLists.map((rules) => typeCondition(shape, rules, "unmatched")).join(" and ");
  return `select type, least(count(*), ${COUNT_MAX}) from (
  select ${shape.eventType} as type from ${shape.quotedName} t where ${shape.main} and ${unmatched} limit ${ROWS_MAX}) u
group by type order by type limit ${TYPES_MAX}`;
}
