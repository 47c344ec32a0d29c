import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import { type Difference, endedSince, parseSnapshot } from "./difference.ts";
import {
  armsOf,
  columnsSql,
  filterConditions,
  fromSql,
  type TailScope,
  tableSql,
  xidArray,
  xidLiteral,
} from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";
import { type Large, walkedSql } from "./walked.ts";

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

/**
 * Where the parts of a large difference begin: in the row without a transaction, the part that began after the older
 * snapshot, then each transaction that ran in it. The addition keeps the planner from searching the minimum along the
 * positions.
 */
export function surveyLargeSql(scope: TailScope, difference: Difference & { readonly to: string }): string {
  const { position, xid } = scope.shape;
  const range = `${xid} >= ${xidLiteral(parseSnapshot(difference.from).end)}
  and ${xid} < ${xidLiteral(parseSnapshot(difference.to).end)}`;
  const first = `select ${position} from ${tableSql(scope)} where ${xid} = x order by ${xid}, ${position} limit 1`;
  return `select null, min(${position} + 0) from ${tableSql(scope)} where ${range}
union all select x::text, (${first}) from unnest(${xidArray(endedSince(difference))}) x`;
}

/** How far such a step of the walk went, whatever it returned, and over how many rows. */
export function walkEndSql(scope: TailScope, stretch: Stretch, large: Large, stepMax: number): string {
  const { position } = scope.shape;
  return `select max(${position}), count(*) from (${walkedSql(scope, stretch, large, stepMax)}) t`;
}

/** The next rows of a large difference, along the positions. It scans at most `stepMax` rows of it. */
export function walkSql(scope: TailScope, stretch: Stretch, large: Large, rows: number, stepMax: number) {
  const conditions = filterConditions(scope, stretch.lanes);
  const where = conditions.length > 0 ? `where ${conditions.join("\n  and ")}\n` : "";
  return `select ${columnsSql(scope)}
from ${fromSql(scope, `(${walkedSql(scope, stretch, large, stepMax)})`)}
${where}order by ${scope.shape.position} limit ${rows}`;
}
