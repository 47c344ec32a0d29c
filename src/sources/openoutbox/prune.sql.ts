import { mineCondition, type QueueScope } from "./openoutbox-table.ts";

interface PruneStep {
  readonly olderThanMs: number;
  readonly rows: number;
  /** The blocks of the table to look at, from inclusive, to exclusive; null for all. */
  readonly blocks: { readonly from: number; readonly to: number } | null;
}

/** Deletes delivered rows of a part of the table. By id, since a ctid means nothing across partitions. */
export function pruneSql(scope: QueueScope, { olderThanMs, rows, blocks }: PruneStep): string {
  const within = blocks ? `and t.ctid >= '(${blocks.from},0)'::tid and t.ctid < '(${blocks.to},0)'::tid` : "";
  return `with pruned as (
  delete from ${scope.table.quotedName} t where t.event_id in (
    select t.event_id from ${scope.table.quotedName} t
    where t.status = 'DELIVERED' and t.delivered_at < now() - ${Math.round(olderThanMs)} * interval '1 millisecond'
      and ${mineCondition(scope)} ${within}
    limit ${Math.max(0, Math.floor(rows))} for update skip locked)
  returning 1)
select count(*) from pruned`;
}
