import type { EventTable } from "./event-table.ts";
import type { RelayTables } from "./relay-tables.ts";

/**
 * Copies dead events to the dead letters, together with what their holds know. The server copies, so a payload too
 * large to load is kept as well. An event that was replayed and died again becomes an open dead letter again and keeps
 * its former errors. Takes `$1` pipeline, `$2` ids, `$3` and `$4` the source's schema and table. Returns a note of
 * each.
 */
export const copyDeadSql = ({ holds, failedEvents }: RelayTables, table: EventTable): string => `
insert into ${failedEvents} as d (pipeline, original_event_id, source_schema, source_table, event_type, event_key, payload,
  headers, correlation_id, event_created_at, failure_reason, failure_count, first_failed_at, last_failed_at, errors)
select $1::text, h.event_id, $3::text, $4::text, ${table.eventType}, ${table.key}, ${table.payloadBytes},
  ${table.headersJson}, ${table.correlationId}, ${table.createdAt},
  h.reason, h.attempts, h.first_failed_at, h.last_failed_at, h.errors
from ${holds} h join ${table.quotedName} t on ${table.id} = h.event_id::${table.idType}
where h.pipeline = $1 and h.event_id = any($2::text[]) and ${table.id} = any($2::text[]::${table.idType}[])
on conflict (pipeline, original_event_id) do update set
  event_type = excluded.event_type, event_key = excluded.event_key, payload = excluded.payload,
  headers = excluded.headers, correlation_id = excluded.correlation_id, failure_reason = excluded.failure_reason,
  failure_count = excluded.failure_count, last_failed_at = excluded.last_failed_at,
  errors = case when d.errors -> 0 = excluded.errors -> 0 then excluded.errors else d.errors || excluded.errors end,
  resolved_at = null, resolution = null, resolved_by = null, resolution_note = null
returning jsonb_build_object('id', original_event_id, 'type', event_type, 'correlationId', correlation_id,
  'firstFailedAt', first_failed_at, 'lastFailedAt', last_failed_at, 'errors', errors)`;

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

/**
 * Notes that a lane that keeps crashing is about to send these events: a later owner that finds the note counts one
 * more crash. The holds are due at once and park their keys. Takes `$1` pipeline, `$2` lane, `$3` ids, `$4` keys.
 */
export const holdSuspectsSql = ({ holds }: RelayTables): string => `
insert into ${holds} as h (pipeline, lane, event_id, event_key, state, parks, attempts, crashes, next_at, reason)
select $1::text, $2::int, s.id, s.key, 'suspect', s.key is not null, 0, 1, clock_timestamp(), 'about to be sent'
from unnest($3::text[], $4::text[]) as s (id, key)
on conflict (pipeline, event_id) do update set
  lane = excluded.lane, state = 'suspect', crashes = h.crashes + 1, next_at = excluded.next_at`;
