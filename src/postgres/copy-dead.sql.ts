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
