import { quoteLiteral } from "../identifiers.ts";
import type { RelayTables } from "../relay-tables.ts";

/** Where the lanes of a pipeline stand, as columns: `lane, settled_at, seen, opened, after`. A select. */
export function lanePlacesSql({ lanes }: RelayTables, pipeline: string): string {
  return `select l.lane::bigint as lane, l.settled_at, (l.position ->> 'from')::pg_snapshot as seen,
    (l.position ->> 'to')::pg_snapshot as opened, coalesce((l.position ->> 'after')::bigint, 0) as after,
    l.position ->> 'ahead' as ahead
  from ${lanes} l where l.pipeline = ${quoteLiteral(pipeline)}`;
}

/**
 * True for a row `t` that lies behind the place of its lane: neither was its transaction over when everything was read
 * up to there, nor does it belong to the part that was read of what came after. A lane without a place has read nothing.
 */
export function isUnreadSql(lane: string): string {
  return `(${lane}.seen is null or (not pg_visible_in_snapshot(t.xid, ${lane}.seen)
    and (${lane}.opened is null or t.id > ${lane}.after or not pg_visible_in_snapshot(t.xid, ${lane}.opened))))`;
}
