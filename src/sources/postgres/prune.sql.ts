import type { TableShape } from "./table-shape.ts";

interface PruneStep {
  readonly deliveredAt: string;
  readonly olderThanMs: number;
  readonly rows: number;
  /** A further condition. */
  readonly within?: string;
}

/** Deletes a few delivered rows that are older. By id, since a ctid is not unique across partitions. */
export function pruneSql(shape: TableShape, { deliveredAt, olderThanMs, rows, within = "true" }: PruneStep): string {
  const age = `${Math.round(olderThanMs)} * interval '1 millisecond'`;
  return `with pruned as (
  delete from ${shape.quotedName} t where ${shape.id} in (
    select ${shape.id} from ${shape.quotedName} t
    where ${shape.delivered} and ${deliveredAt} < now() - ${age} and ${within}
    limit ${Math.max(0, Math.floor(rows))} for update skip locked)
  returning 1)
select count(*) from pruned`;
}
