import { fingerprintSql } from "../error-form.ts";
import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/** Builds the error groups again, with a form in which ids, names and response bodies split fewer of them. */
export const errorGroupsMigration: Migration = {
  version: 11,
  name: "error groups",
  servesFrom: 3,
  up: makeFingerprintSql,
  down: makeFingerprintSql,
};

function makeFingerprintSql(relaySchema: string): string {
  const { failedEvents } = relayTables(relaySchema);
  const columns = { reason: "failure_reason", key: "event_key" };
  return `
alter table ${failedEvents} drop column fingerprint;
alter table ${failedEvents} add column fingerprint text generated always as (${fingerprintSql(columns)}) stored;
create index failed_events_by_fingerprint on ${failedEvents} (fingerprint, last_failed_at, id) where resolved_at is null;`;
}
