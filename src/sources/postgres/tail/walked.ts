import { parseSnapshot } from "./difference.ts";
import { isBeginning, snapshotLiteral, type TailScope, tableSql, xidLiteral } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";

/**
 * The next `stepMax` rows of a difference in the order of their positions, each part of it along an index. `is true`
 * keeps the planner from the index on the transaction: with old statistics it would expect next to nothing there and
 * sort the whole difference for every page.
 */
export function walkedSql(scope: TailScope, stretch: Stretch, xids: readonly bigint[], stepMax: number): string {
  const { position, xid } = scope.shape;
  const { difference, after } = stretch;
  const visible = `pg_visible_in_snapshot(${xid}, ${snapshotLiteral(difference.to ?? "")})`;
  const arm = (condition: string, order = position) =>
    `(select * from ${tableSql(scope)} where ${position} > ${after} and ${condition} order by ${order} limit ${stepMax})`;
  if (isBeginning(difference)) return arm(`(${xid} is null or ${visible})`);
  const later = arm(`(${xid} >= ${xidLiteral(parseSnapshot(difference.from).end)}) is true and ${visible}`);
  if (xids.length === 0) return later;
  const ended = xids.map((it) => arm(`${xid} = ${xidLiteral(it)} and ${visible}`));
  return `select * from (${[later, ...ended].join("\n  union all ")}) t order by ${position} limit ${stepMax}`;
}
