import type { RelayTables } from "./relay-tables.ts";

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
