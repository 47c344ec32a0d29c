import type { Settlement } from "../../ports/queue-store.ts";
import { fenceSql } from "../../postgres/fence.sql.ts";
import { quoteArray, quoteLiteral } from "../../postgres/identifiers.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { TableShape } from "./table-shape.ts";

/** What to do with rows that another transaction has locked: wait for them, or leave them unmarked. */
export type LockedRows = "wait" | "skip";

/**
 * Raises the lane's batch and marks its delivered rows, or changes nothing when the fence has no row. Returns one row:
 * the number of fences (0 or 1), the marked ids as JSON only when some are missing, their number, and whether the table
 * has triggers that can undo a mark afterwards. A row counts as marked by its state after the update: a BEFORE trigger
 * may have reset the flag. If several rows have one id, the cast of SHARED_ID makes the whole statement fail.
 */
export function markSql(
  tables: RelayTables,
  pipeline: string,
  shape: TableShape,
  settlement: Settlement,
  locked: LockedRows = "wait",
): string {
  const { delivered } = settlement;
  const fence = fenceSql(tables, pipeline, settlement);
  if (delivered.length === 0) return `with fence as (${fence}) select count(*), null, 0, false from fence`;
  const shared = `'${SHARED_ID} [' || (select id::text from updated group by id having count(*) > 1 limit 1) || ']'`;
  return `with fence as (${fence}),
updated as (
  update ${shape.quotedName} t set ${shape.markDelivered} from fence
  where ${rowsSql(shape, delivered, locked)} and ${shape.unsettled}
  returning ${shape.id} as id, ${shape.unsettled} as still),
marked as (select id from updated where not still)
select (select count(*) from fence),
  case when (select count(*) from marked) <> ${delivered.length} then (select json_agg(id::text) from marked)::text end,
  (select count(*) from marked), ${undoersSql(shape)},
  case when (select count(*) from updated) > ${delivered.length} then (${shared})::int end`;
}

function rowsSql(shape: TableShape, ids: readonly string[], locked: LockedRows): string {
  const wanted = `${shape.id} = any(${quoteArray(ids)}::${shape.idType}[])`;
  if (locked === "wait") return wanted;
  const free = `select ${shape.id} from ${shape.quotedName} t where ${wanted} and ${shape.unsettled} for update skip locked`;
  return `${shape.id} in (${free})`;
}

/**
 * Checked every time, because the relay gets no notice of a new trigger: AFTER UPDATE (16), not BEFORE (2), not
 * disabled.
 */
function undoersSql({ quotedName }: TableShape): string {
  return `exists (select from pg_catalog.pg_trigger g
    where g.tgrelid = ${quoteLiteral(quotedName)}::pg_catalog.regclass and not g.tgisinternal and g.tgenabled <> 'D'
      and g.tgtype & 16 <> 0 and g.tgtype & 2 = 0)`;
}

/**
 * In the server's message when several rows have one id, which follows in brackets. Only one of them was sent, so none
 * is marked.
 */
export const SHARED_ID = "outbox-relay: several rows have the id";
