import { SERVER_INCARNATION } from "../../../postgres/server-incarnation.ts";
import type { TailShape } from "./tail-shape.ts";

/**
 * Returns one row: the highest committed position, the server's incarnation, and as JSON the transactions that may have
 * written and have not ended, each with its process. The order matters: the position comes from the statement's
 * snapshot, the locks are those of a later moment. A transaction that drew a lower position before holds its lock from
 * then until it ends. VACUUM, ANALYZE and index builds hold locks of other kinds.
 */
export function openWritersSql({ events, position }: TailShape, oid: string): string {
  return `select (select max(${position}) from ${events.quotedName} t), ${SERVER_INCARNATION},
  (select coalesce(json_agg(distinct l.virtualtransaction || ' ' || coalesce(l.pid, 0)), '[]') from pg_catalog.pg_locks l
   where l.locktype = 'relation' and l.mode = 'RowExclusiveLock' and l.granted and l.pid is distinct from pg_backend_pid()
     and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
     and l.relation in (select ${oid}::oid union all select p.relid from pg_partition_tree(${oid}::oid) p))`;
}
