import { quoteLiteral } from "../identifiers.ts";
import type { RelayTables } from "../relay-tables.ts";

/** The positions of a pipeline's lanes, as columns: `lane, settled_at, seen, opened, after`. A select. */
export function lanePositionsSql({ lanes }: RelayTables, pipeline: string): string {
  return `select l.lane::bigint as lane, l.settled_at, (l.position ->> 'from')::pg_snapshot as seen,
    (l.position ->> 'to')::pg_snapshot as opened, coalesce((l.position ->> 'after')::bigint, 0) as after,
    l.position ->> 'ahead' as ahead
  from ${lanes} l where l.pipeline = ${quoteLiteral(pipeline)}`;
}

/**
 * True for a row `t` that its lane has not read: its transaction had not ended in the snapshot that was read
 * completely, and it is not in the part read of the next one. A lane without a position has read nothing.
 */
export function isUnreadSql(lane: string): string {
  return `(${lane}.seen is null or (not pg_visible_in_snapshot(t.xid, ${lane}.seen)
    and (${lane}.opened is null or t.id > ${lane}.after or not pg_visible_in_snapshot(t.xid, ${lane}.opened))))`;
}
