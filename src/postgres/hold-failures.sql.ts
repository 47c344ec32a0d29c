import type { EventTable } from "./event-table.ts";
import type { RelayTables } from "./relay-tables.ts";

/**
 * Attempts whose errors are kept: the first and the newest. The policy `block` retries forever; its history is bounded.
 */
const ERRORS_MAX = 100;

/**
 * One hold per failed event whose row is still pending; returns their ids. The error of each attempt is appended. A
 * failed suspect crashed no process, so its last crash does not count. Takes `$1` pipeline, `$2` lane and the columns
 * of `failureColumns`.
 */
export const holdFailuresSql = ({ holds }: RelayTables, table: EventTable): string => `
insert into ${holds} as h
  (pipeline, lane, event_id, event_key, state, parks, attempts, next_at, reason, errors)
select $1::text, $2::int, f.id, f.key, case when f.delay_ms is null then 'dead' else 'retrying' end, f.parks, f.attempts,
  clock_timestamp() + f.delay_ms * interval '1 millisecond', f.reason,
  jsonb_build_array(jsonb_build_object('at', clock_timestamp(), 'attempt', f.attempts, 'reason', f.reason))
from unnest($3::text[], $4::text[], $5::text[], $6::int[], $7::bigint[], $8::boolean[])
  as f (id, key, reason, attempts, delay_ms, parks)
where exists (
  select from ${table.quotedName} t where ${table.id} = f.id::${table.idType}
    and ${table.id} = any($3::text[]::${table.idType}[]) and ${table.unsettled})
on conflict (pipeline, event_id) do update set
  lane = excluded.lane, event_key = excluded.event_key, state = excluded.state, parks = excluded.parks,
  crashes = h.crashes - (h.state = 'suspect')::int, attempts = excluded.attempts, next_at = excluded.next_at, reason = excluded.reason,
  errors = (case when jsonb_array_length(h.errors) >= ${ERRORS_MAX} then h.errors - 1 else h.errors end) || excluded.errors,
  first_failed_at = case when h.errors = '[]' then clock_timestamp() else h.first_failed_at end,
  last_failed_at = clock_timestamp()
returning h.event_id`;
