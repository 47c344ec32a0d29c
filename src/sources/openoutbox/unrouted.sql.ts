import type { TypeRule } from "../../ports/queue-store.ts";
import type { EventTable } from "../../postgres/event-table.ts";
import { typeCondition } from "../../postgres/type-condition.ts";

const COUNT_MAX = 1_000;
const TYPES_MAX = 1_000;
/** What nobody takes stays and gathers at the head of the queue, so there is no need to count a backlog of millions. */
const ROWS_MAX = 100_000;

/** Types of waiting rows that no rule matches. */
export function unroutedSql(table: EventTable, ruleLists: readonly (readonly TypeRule[])[]): string {
  const unmatched = ruleLists.map((rules) => typeCondition(table, rules, "unmatched")).join(" and ");
  return `select t.event_type, least(count(*), ${COUNT_MAX}) from (
  select event_type, partition_key, headers from ${table.quotedName} where status = 'PENDING'
  order by available_at, created_at limit ${ROWS_MAX}) t
where ${unmatched} group by t.event_type order by t.event_type limit ${TYPES_MAX}`;
}
