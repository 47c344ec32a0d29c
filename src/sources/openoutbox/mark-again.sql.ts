import { unmarkedSql } from "../../postgres/unmarked.ts";
import { MARK_DELIVERED, type QueueScope } from "./openoutbox-table.ts";

/** Marks delivered rows that could not be marked before, unless they are locked. Takes `$1` pipeline and `$2` lane. */
export const markAgainSql = ({ table, tables }: QueueScope): string => `
update ${table.quotedName} t set ${MARK_DELIVERED}
where t.event_id in (
  select t.event_id from ${tables.holds} h join ${table.quotedName} t on t.event_id = h.event_id::uuid
  where h.pipeline = $1 and h.lane = $2 and ${unmarkedSql("h.")} is not null and t.status in ('PENDING', 'DELIVERING')
  for update of t skip locked)`;
