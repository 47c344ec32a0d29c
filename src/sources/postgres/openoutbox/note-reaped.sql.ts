import type { RelayTables } from "../../../postgres/relay-tables.ts";

/** Adds the failure to the holds of reaped events. Takes `$1` pipeline, `$2` ids, `$3` attempts, `$4` reasons. */
export const noteReapedSql = ({ holds }: RelayTables): string => `
update ${holds} h set attempts = r.attempts, reason = r.reason, last_failed_at = clock_timestamp(),
  errors = h.errors || jsonb_build_array(
    jsonb_build_object('at', clock_timestamp(), 'attempt', r.attempts, 'reason', r.reason))
from unnest($2::text[], $3::int[], $4::text[]) as r (id, attempts, reason)
where h.pipeline = $1 and h.event_id = r.id and h.event_id = any($2::text[])`;
