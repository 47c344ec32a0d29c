import { type TailScope, tableSql } from "./tail-scope.ts";

/**
 * Whether rows claim to be of transactions that this server has not begun yet: they came out of a dump of another one.
 * What a statement sees is always older than the end of its own snapshot, so there is no other way.
 */
export function checkTableSql(scope: TailScope): string {
  const { xid, position } = scope.shape;
  return `select exists (select from ${tableSql(scope)} where ${xid} >= pg_snapshot_xmax(pg_current_snapshot())
  order by ${xid}, ${position} limit 1)`;
}
