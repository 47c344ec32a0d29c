import type { TypeRule } from "../../ports/queue-store.ts";
import { typeCondition } from "../../postgres/type-condition.ts";
import { orderColumns, type TableShape } from "./table-shape.ts";

const COUNT_MAX = 1_000;
const TYPES_MAX = 1_000;
/**
 * Enough to list the types without counting a backlog of millions. In a table with claims, unrouted rows are never
 * claimed and gather at the head.
 */
const ROWS_MAX = 100_000;

/** The types of pending rows that match no rule. */
export function unroutedSql(shape: TableShape, ruleLists: readonly (readonly TypeRule[])[]): string {
  const unmatched = ruleLists.map((rules) => typeCondition(shape, rules, "unmatched")).join(" and ");
  const { claims, eventType, main, quotedName } = shape;
  const head = `select ${claims?.matched} from ${quotedName} t where ${main}
    order by ${orderColumns(shape).join(", ")} limit ${ROWS_MAX}`;
  const some =
    claims === undefined
      ? `${quotedName} t where ${main} and ${unmatched} limit ${ROWS_MAX}`
      : `(${head}) t where ${unmatched}`;
  return `select type, least(count(*), ${COUNT_MAX}) from (select ${eventType} as type from ${some}) u
group by type order by type limit ${TYPES_MAX}`;
}
