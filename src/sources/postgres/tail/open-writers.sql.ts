import { LIFE } from "../../../postgres/server-life.ts";
import type { TailShape } from "./tail-shape.ts";

/**
 * One row: the highest position that is committed, the server's life, and as JSON the transactions that may have written
 * and are not over, each with its process. The position is of the statement's snapshot, the locks are those of the
 * moment after it: whoever drew a lower position before has the lock from then until it is over. VACUUM, ANALYZE and
 * the building of an index hold locks of other kinds.
 */
export function openWritersSql({ events, position }: TailShape, oid: string): string {
  return `select (select max(${position}) from ${events.quotedName} t), ${LIFE},
  (select coalesce(json_agg(distinct l.virtualtransaction || ' ' || coalesce(l.pid, 0)), '[]') from pg_catalog.pg_locks l
   where l.locktype = 'relation' and l.mode = 'RowExclusiveLock' and l.granted and l.pid is distinct from pg_backend_pid()
     and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
     and l.relation in (select ${oid}::oid union all select p.relid from pg_partition_tree(${oid}::oid) p))`;
}
