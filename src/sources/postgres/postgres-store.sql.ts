import type { TypeRule } from "../../ports/queue-store.ts";
import { typeCondition } from "../../postgres/type-condition.ts";
import { eventColumnsSql, eventFromSql } from "./event-columns.ts";
import { type PendingFilter, type PendingScope, pendingCondition } from "./pending-condition.ts";
import { orderColumns, type TableShape } from "./table-shape.ts";

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

interface PruneStep {
  readonly deliveredAt: string;
  readonly olderThanMs: number;
  readonly rows: number;
  /** A further condition. */
  readonly within?: string;
}

/** Deletes a few delivered rows that are older. By id, since a ctid is not unique across partitions. */
export function pruneSql(shape: TableShape, { deliveredAt, olderThanMs, rows, within = "true" }: PruneStep): string {
  const age = `${Math.round(olderThanMs)} * interval '1 millisecond'`;
  return `with pruned as (
  delete from ${shape.quotedName} t where ${shape.id} in (
    select ${shape.id} from ${shape.quotedName} t
    where ${shape.delivered} and ${deliveredAt} < now() - ${age} and ${within}
    limit ${Math.max(0, Math.floor(rows))} for update skip locked)
  returning 1)
select count(*) from pruned`;
}

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
