import type { TableShape } from "./table-shape.ts";

/** Deletes a few delivered rows older than this. By id, since a ctid means nothing across partitions. */
export function pruneSql(shape: TableShape, deliveredAt: string, olderThanMs: number, rows: number): string {
  const age = `${Math.round(olderThanMs)} * interval '1 millisecond'`;
  return `with pruned as (
  delete from ${shape.quotedName} t where ${shape.id} in (
    select ${shape.id} from ${shape.quotedName} t
    where ${shape.delivered} and ${deliveredAt} < now() - ${age}
    limit ${Math.max(0, Math.floor(rows))} for update skip locked)
  returning 1)
select count(*) from pruned`;
}
