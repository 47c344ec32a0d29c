import type { Settlement } from "../../ports/queue-store.ts";
import { fenceSql } from "../../postgres/fence.sql.ts";
import { quoteArray } from "../../postgres/identifiers.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { TableShape } from "./table-shape.ts";

/**
 * Moves the lane on and marks its delivered rows, or changes nothing when the fence has no row. Returns one row: how
 * many fences (0 or 1), and the marked ids as JSON only when they are not as many as were asked for.
 */
export function markSql(tables: RelayTables, pipeline: string, shape: TableShape, settlement: Settlement): string {
  const { delivered } = settlement;
  const fence = fenceSql(tables, pipeline, settlement);
  if (delivered.length === 0) return `with fence as (${fence}) select count(*), null from fence`;
  return `with fence as (${fence}),
marked as (
  update ${shape.quotedName} t set ${shape.markDelivered} from fence
  where ${shape.id} = any(${quoteArray(delivered)}::${shape.idType}[]) and ${shape.unsettled}
  returning ${shape.id} as id)
select (select count(*) from fence),
  case when (select count(*) from marked) <> ${delivered.length} then (select json_agg(id::text) from marked)::text end,
  (select count(*) from marked)`;
}
