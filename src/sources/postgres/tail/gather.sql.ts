import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import { armsOf, columnsSql, filterConditions, fromSql, type TailScope } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";

/**
 * The first rows of a small difference: all of it is looked up and sorted. Snapshot and rows come from one statement,
 * so the difference is exactly what is read. A difference of more than `sizeMax` rows returns none, only its snapshot.
 * `offset 0` keeps the planner from walking the whole table in the order of its positions.
 */
export function gatherSql(scope: TailScope, stretch: Stretch, rows: number, sizeMax: number): string {
  const { position } = scope.shape;
  const arms = armsOf(scope, stretch.difference, stretch.after);
  const counted = arms.map((arm) => `(${arm.replace("select * from", "select from")})`).join("\n    union all ");
  const all = `(select * from (${arms.join("\n    union all ")}) u offset 0)`;
  const conditions = [`look.size <= ${sizeMax}`, ...filterConditions(scope, stretch.lanes)];
  return `with look as materialized (select pg_current_snapshot()::text as snapshot, ${SERVER_INCARNATION} as incarnation,
  (select count(*) from (${counted} limit ${sizeMax + 1}) c) as size)
select e.*, look.incarnation, look.snapshot, look.size from look left join lateral (
  select ${columnsSql(scope)} from ${fromSql(scope, all)}
  where ${conditions.join("\n    and ")}
  order by ${position} limit ${rows}) e on true`;
}
