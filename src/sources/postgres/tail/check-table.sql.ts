import type { TailShape } from "./tail-shape.ts";

/**
 * Whether rows name transactions that this server has not begun yet: they come from a dump of another server. A
 * statement's own snapshot never contains such rows, so only this comparison finds them.
 */
export function checkTableSql({ events, xid, position }: TailShape): string {
  return `select exists (select from ${events.quotedName} t where ${xid} >= pg_snapshot_xmax(pg_current_snapshot())
  order by ${xid}, ${position} limit 1)`;
}
