import { BACKLOG_EXACT_MAX } from "../../ports/queue-store.ts";
import { quoteLiteral } from "../../postgres/identifiers.ts";
import { mineCondition, type QueueScope } from "./openoutbox-table.ts";

const LIMIT = `limit ${BACKLOG_EXACT_MAX + 1}`;

/**
 * One row: how many events wait or are claimed (at most one more than are counted), the age of the oldest in ms, and
 * the dead letters that nobody has resolved and whose rows nobody has touched since. An event that was scheduled for later is not late before its
 * time. One part per status, because each has a partial index of its own.
 */
export function backlogSql(scope: QueueScope): string {
  const { table, tables } = scope;
  const pipeline = quoteLiteral(scope.pipeline);
  const since = "greatest(t.created_at, case when t.attempts = 0 then t.available_at end) as since";
  const part = (status: string, more: string) => `(select ${since} from ${table.quotedName} t
    where t.status = '${status}' and ${mineCondition(scope)} ${more} ${LIMIT})`;
  const notParked = `and (t.partition_key is null or t.partition_key collate "C" not in (
      select h.event_key from ${tables.holds} h
      where h.pipeline = ${pipeline} and h.state = 'dead' and h.parks and h.event_key is not null))`;
  const dead = `select from ${tables.failedEvents} d join ${table.quotedName} t on t.event_id = d.original_event_id::uuid
    where d.pipeline = ${pipeline} and d.resolved_at is null and t.status is not distinct from 'DEAD' ${LIMIT}`;
  return `select least(count(*), ${BACKLOG_EXACT_MAX + 1}), extract(epoch from clock_timestamp() - min(w.since)) * 1000,
  (select count(*) from (${dead}) x)
from (${part("PENDING", `${notParked} order by t.available_at, t.created_at`)}
  union all ${part("DELIVERING", "")}) w`;
}
