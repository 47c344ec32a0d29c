import { fingerprintSql } from "../error-form.ts";
import { type RelayTables, relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/**
 * Tables for operators: recorded attempts, the audit log, replay plans with their items, a limit per pipeline, and dead
 * letters grouped by their error.
 */
export const operationsMigration: Migration = {
  version: 7,
  name: "operations",
  servesFrom: 3,
  up: (relaySchema) => {
    const tables = relayTables(relaySchema);
    return [attemptsSql(tables), auditSql(tables), replaysSql(tables), columnsSql(tables)].join("\n");
  },
  down: (relaySchema) => {
    const { attempts, audit, failedEvents, pipelines, replayItems, replayPlans, schema } = relayTables(relaySchema);
    return `
drop index ${schema}.holds_by_key;
drop index ${schema}.failed_events_by_event, ${schema}.failed_events_by_key, ${schema}.failed_events_by_correlation;
alter table ${failedEvents} drop column fingerprint;
alter table ${pipelines} drop column limit_per_second, drop column limited_by, drop column limit_reason,
  drop column holds_change;
drop table ${replayItems}, ${replayPlans}, ${audit}, ${attempts};
drop function ${schema}.audit_is_append_only();`;
  },
};

/** Written in batches beside the delivery, and pruned by age. */
const attemptsSql = ({ attempts }: RelayTables) => `
create table ${attempts} (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  pipeline text not null,
  event_id text not null,
  event_type text,
  event_key text,
  correlation_id text,
  instance text,
  outcome text not null check (outcome in ('delivered', 'failed', 'dead')),
  attempt int not null,
  reason text,
  error_type text,
  target text,
  written_at timestamptz,
  claimed_at timestamptz,
  sent_at timestamptz,
  duration_ms double precision,
  headers jsonb
);
create index attempts_by_time on ${attempts} (at);
create index attempts_by_event on ${attempts} (event_id, pipeline);`;

/** Append-only, even for the relay itself. */
const auditSql = ({ audit, schema }: RelayTables) => `
create table ${audit} (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  via text not null check (via in ('api', 'console', 'cli', 'relay')),
  action text not null,
  target text,
  event_id text,
  reason text,
  detail jsonb not null default '{}'
);
create index audit_by_event on ${audit} (event_id) where event_id is not null;
create index audit_of_people on ${audit} (id) where not (via = 'relay' and event_id is not null);
create function ${schema}.audit_is_append_only() returns trigger language plpgsql as $audit$
begin raise exception 'the audit is append-only'; end $audit$;
create trigger audit_is_append_only before update or delete or truncate on ${audit}
  for each statement execute function ${schema}.audit_is_append_only();`;

/** A plan is frozen: its items are the events that existed when it was created, each in its state at that time. */
const replaysSql = ({ replayItems, replayPlans }: RelayTables) => `
create table ${replayPlans} (
  id uuid primary key default gen_random_uuid(),
  action text not null check (action in ('replay', 'discard')),
  subject text not null check (subject in ('dead', 'delivered')),
  filter text not null,
  state text not null check (state in ('planned', 'running', 'paused', 'stopped', 'done', 'cancelled')),
  stage text not null default 'first' check (stage in ('first', 'ten', 'rest')),
  rate_per_second double precision check (rate_per_second > 0),
  breakdown jsonb not null default '{}',
  warnings jsonb not null default '[]',
  created_at timestamptz not null default clock_timestamp(),
  created_by text not null,
  reason text,
  started_at timestamptz,
  started_by text,
  finished_at timestamptz,
  stop_reason text,
  runner uuid,
  runner_until timestamptz,
  items int not null default 0
);
create index replay_plans_by_time on ${replayPlans} (created_at, id);
create index replay_plans_running on ${replayPlans} (runner_until) where state = 'running';
create table ${replayItems} (
  plan uuid not null references ${replayPlans} (id) on delete cascade,
  seq bigint not null,
  pipeline text not null,
  source text not null,
  event_id text not null,
  event_key text,
  event_type text not null,
  fingerprint text,
  was jsonb not null default '{}',
  state text not null default 'waiting' check (state in ('waiting', 'sent', 'done', 'failed', 'left')),
  reason text,
  changed_at timestamptz,
  primary key (plan, seq)
);
create index replay_items_by_state on ${replayItems} (plan, state, seq);
create index replay_items_by_event on ${replayItems} (event_id);`;

const columnsSql = ({ failedEvents, holds, pipelines }: RelayTables) => `
alter table ${pipelines}
  add column limit_per_second double precision check (limit_per_second > 0),
  add column limited_by text,
  add column limit_reason text,
  add column holds_change bigint not null default 0;
alter table ${failedEvents}
  add column fingerprint text generated always as (${fingerprintSql({ reason: "failure_reason", key: "event_key" })}) stored;
create index failed_events_by_fingerprint on ${failedEvents} (fingerprint, last_failed_at, id) where resolved_at is null;
create index failed_events_by_event on ${failedEvents} (original_event_id);
create index failed_events_by_key on ${failedEvents} (event_key);
create index failed_events_by_correlation on ${failedEvents} (correlation_id);
create index holds_by_key on ${holds} (pipeline, event_key);`;
