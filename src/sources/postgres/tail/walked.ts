import { parseSnapshot } from "./difference.ts";
import { isBeginning, snapshotLiteral, type TailScope, tableSql, xidLiteral } from "./tail-scope.ts";
import type { Stretch } from "./tail-stretch.ts";

/** What is known of a large difference before the walk. */
export interface Large {
  /** Just before the first row that began after the older snapshot; null when there are none. */
  readonly before: number | null;
  /** The transactions that ran in the older snapshot and have rows here. */
  readonly ended: readonly bigint[];
}

/** The whole table, from its beginning. */
export const WHOLE: Large = { before: 0, ended: [] };

/**
 * The next `stepMax` rows of a difference in the order of their positions, each part along an index. Rows that began
 * after the older snapshot lie together near the end of the table, and their walk begins there. Otherwise every page
 * would scan everything between a late transaction's rows and them. `is true` keeps the planner from the index on the
 * transaction: with outdated statistics it would expect almost no rows there and sort the whole difference.
 */
export function walkedSql(scope: TailScope, stretch: Stretch, { before, ended }: Large, stepMax: number): string {
  const { position, xid } = scope.shape;
  const { difference, after } = stretch;
  const arm = (condition: string, from = after) =>
    `(select * from ${tableSql(scope)} where ${position} > ${from} and ${condition} order by ${position} limit ${stepMax})`;
  // Without the column the upper end is a position, up to which everything is final.
  if (xid === null) return arm(`${position} <= ${difference.to}`);
  const visible = `pg_visible_in_snapshot(${xid}, ${snapshotLiteral(difference.to ?? "")})`;
  if (isBeginning(difference)) return arm(`(${xid} is null or ${visible})`);
  const arms = ended.map((it) => arm(`${xid} = ${xidLiteral(it)} and ${visible}`));
  if (before !== null) {
    const isLater = `(${xid} >= ${xidLiteral(parseSnapshot(difference.from).end)}) is true`;
    arms.push(arm(`${isLater} and ${visible}`, Math.max(before, after)));
  }
  if (arms.length === 1) return arms[0]!;
  return `select * from (${arms.join("\n  union all ")}) t order by ${position} limit ${stepMax}`;
}
