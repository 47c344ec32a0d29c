import type { TailShape } from "./tail-shape.ts";

/**
 * Whether rows claim to be of transactions that this server has not begun yet: they came out of a dump of another one.
 * What a statement sees is always older than the end of its own snapshot, so there is no other way.
 */
export function checkTableSql({ events, xid, position }: TailShape): string {
  return `select exists (select from ${events.quotedName} t where ${xid} >= pg_snapshot_xmax(pg_current_snapshot())
  order by ${xid}, ${position} limit 1)`;
}
