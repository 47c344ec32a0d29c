import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/**
 * A pause and a limit for a whole destination, which later pipelines inherit; payload edits with the former content;
 * and the patch that a plan applies to each of its events.
 */
export const destinationsMigration: Migration = {
  version: 10,
  name: "destinations",
  servesFrom: 3,
  up: (relaySchema) => {
    const { destinations, edits, replayPlans, schema } = relayTables(relaySchema);
    return `
create table ${destinations} (
  name text primary key,
  paused_at timestamptz,
  paused_by text,
  pause_reason text,
  limit_per_second double precision check (limit_per_second > 0),
  limited_by text,
  limit_reason text,
  updated_at timestamptz not null default clock_timestamp()
);
create table ${edits} (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  pipeline text not null,
  event_id text not null,
  actor text not null,
  reason text,
  plan uuid,
  payload_before bytea not null,
  payload_after bytea not null,
  headers_before jsonb,
  headers_after jsonb
);
create index edits_by_event on ${schema}.edits (event_id, id);
create index edits_by_time on ${schema}.edits (at);
alter table ${replayPlans} add column patch jsonb;`;
  },
  down: (relaySchema) => {
    const { destinations, edits, replayPlans } = relayTables(relaySchema);
    return `
alter table ${replayPlans} drop column patch;
drop table ${edits}, ${destinations};`;
  },
};
