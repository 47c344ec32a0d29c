import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/** The open dead letters for the operators' own SQL, with payloads that its JSON operators can read. */
export const deadLettersViewMigration: Migration = {
  version: 12,
  name: "dead letters view",
  servesFrom: 3,
  up: (relaySchema) => {
    const { deadLetters, failedEvents, schema } = relayTables(relaySchema);
    return `
create function ${schema}.payload_json(payload bytea) returns jsonb language plpgsql immutable strict
set search_path = pg_catalog as $payload$
begin
  return convert_from(payload, 'UTF8')::jsonb;
exception when others then
  begin
    return to_jsonb(convert_from(payload, 'UTF8'));
  exception when others then
    return to_jsonb(encode(payload, 'base64'));
  end;
end $payload$;
comment on function ${schema}.payload_json(bytea) is
  'JSON as it is, other text as a JSON string, other bytes as a JSON string in base64';
create view ${deadLetters} as
select id, original_event_id, source_schema, source_table, event_type, ${schema}.payload_json(payload) as payload,
  failure_reason, failure_count, first_failed_at, last_failed_at, created_at, pipeline, event_key, correlation_id
from ${failedEvents} where resolved_at is null;`;
  },
  down: (relaySchema) => {
    const { deadLetters, schema } = relayTables(relaySchema);
    return `
drop view ${deadLetters};
drop function ${schema}.payload_json(bytea);`;
  },
};
