import type { RelayTables } from "../../postgres/relay-tables.ts";
import { unmarkedSql } from "../../postgres/unmarked.ts";
import { type TableShape, undelivered } from "./table-shape.ts";

/**
 * Marks delivered rows that could not be marked before. Dropping void holds afterwards shows which rows stayed marked.
 * Locked rows are skipped until the next review. Takes `$1` pipeline and `$2` lane.
 */
export const markAgainSql = ({ holds }: RelayTables, shape: TableShape): string => `
update ${shape.quotedName} t set ${shape.markDelivered}
where ${shape.id} in (
  select ${shape.id} from ${holds} h join ${shape.quotedName} t on ${shape.id} = h.event_id::${shape.idType}
  where h.pipeline = $1 and h.lane = $2 and ${unmarkedSql("h.")} is not null and ${undelivered(shape)}
  for update of t skip locked)`;
