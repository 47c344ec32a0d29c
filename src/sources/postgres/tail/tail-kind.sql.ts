import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import { type Difference, endedSince, parseSnapshot } from "./difference.ts";
import { snapshotLiteral, type TailScope, tableSql, xidArray, xidLiteral } from "./tail-scope.ts";
import type { TailShape } from "./tail-shape.ts";

/** Whether the server has reached the position's snapshot, its current transaction, and its incarnation. */
export function checkPositionSql({ from, to }: Difference): string {
  const now = "pg_snapshot_xmax(pg_current_snapshot())";
  return `select pg_snapshot_xmax(${snapshotLiteral(to ?? from)}) <= ${now}, ${now}::text, ${SERVER_INCARNATION}`;
}

/**
 * Whether rows name transactions that this server has not begun yet: they come from a dump of another server. A
 * statement's own snapshot never contains such rows, so only this comparison finds them.
 */
export function checkTableSql({ events, xid, position }: TailShape): string {
  return `select exists (select from ${events.quotedName} t where ${xid} >= pg_snapshot_xmax(pg_current_snapshot())
  order by ${xid}, ${position} limit 1)`;
}

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
