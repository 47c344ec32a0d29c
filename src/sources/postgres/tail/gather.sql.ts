import { LIFE } from "../../../postgres/server-life.ts";
import { armsOf, columnsSql, filterConditions, fromSql, type TailScope } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";

/**
 * The first rows of a difference that is small: all of it is looked up and put in order. Snapshot and rows come from
 * one statement, so that the difference is exactly what is read. One that has more than `sizeMax` rows shows none, only
 * its snapshot. `offset 0` keeps the planner from walking the whole table in the order of its positions.
 */
export function gatherSql(scope: TailScope, stretch: Stretch, rows: number, sizeMax: number): string {
  const { position } = scope.shape;
  const arms = armsOf(scope, stretch.difference, stretch.after);
  const counted = arms.map((arm) => `(${arm.replace("select * from", "select from")})`).join("\n    union all ");
  const all = `(select * from (${arms.join("\n    union all ")}) u offset 0)`;
  const conditions = [`look.size <= ${sizeMax}`, ...filterConditions(scope, stretch.lanes)];
  return `with look as materialized (select pg_current_snapshot()::text as snapshot, ${LIFE} as life,
  (select count(*) from (${counted} limit ${sizeMax + 1}) c) as size)
select e.*, look.life, look.snapshot, look.size from look left join lateral (
  select ${columnsSql(scope)} from ${fromSql(scope, all)}
  where ${conditions.join("\n    and ")}
  order by ${position} limit ${rows}) e on true`;
}
