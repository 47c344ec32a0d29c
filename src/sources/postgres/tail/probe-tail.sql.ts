import { endedSince, parseSnapshot } from "./difference.ts";
import { type TailScope, tableSql, xidArray, xidLiteral } from "./tail-scope.ts";

/**
 * Returns one row when something was written since one of these snapshots, for whatever pipeline; a pass finds out
 * more. In the order of the index, so that the planner uses it whatever the statistics say.
 */
export function probeTailSql(scope: TailScope, snapshots: readonly string[]): string {
  const { position, xid } = scope.shape;
  const look = (condition: string) =>
    `(select 1 from ${tableSql(scope)} where ${condition} order by ${xid}, ${position} limit 1)`;
  const arms = snapshots.flatMap((from) => {
    const running = endedSince({ from, to: null });
    const later = look(`${xid} >= ${xidLiteral(parseSnapshot(from).end)}`);
    return running.length === 0 ? [later] : [later, look(`${xid} = any(${xidArray(running)})`)];
  });
  return `select 1 from (${arms.join("\nunion all ")}) found limit 1`;
}
