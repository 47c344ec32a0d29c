import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/** What an operator did with a dead letter. Without a resolution it is open. */
export const resolutionsMigration: Migration = {
  version: 4,
  name: "resolutions",
  servesFrom: 3,
  up: (relaySchema) => {
    const { failedEvents } = relayTables(relaySchema);
    return `
alter table ${failedEvents}
  add column resolved_at timestamptz,
  add column resolution text check (resolution in ('replayed', 'discarded')),
  add column resolved_by text,
  add column resolution_note text,
  add constraint resolved_together check ((resolved_at is null) = (resolution is null));
create index failed_events_unresolved on ${failedEvents} (last_failed_at, id) where resolved_at is null;`;
  },
  down: (relaySchema) => {
    const { failedEvents, schema } = relayTables(relaySchema);
    return `
drop index ${schema}.failed_events_unresolved;
alter table ${failedEvents} drop column resolved_at, drop column resolution, drop column resolved_by,
  drop column resolution_note;`;
  },
};
