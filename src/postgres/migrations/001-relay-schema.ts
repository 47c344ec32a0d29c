import { relayTables } from "../relay-tables.ts";
import type { Migration } from "./migration.ts";

/** The relay's whole schema: the living instances, the owners of lanes, holds and dead letters. */
export const relaySchemaMigration: Migration = {
  version: 1,
  name: "relay schema",
  up: (relaySchema) => {
    const tables = relayTables(relaySchema);
    return [
      ownershipSql(tables),
      failureSql(tables),
      stateViewSql(tables),
      technicalEventsSql(tables),
      identitySql(tables.identity),
    ].join("\n");
  },
  down: (relaySchema) => {
    const tables = relayTables(relaySchema);
    return `
drop view ${tables.relayState};
drop table ${tables.technicalEvents}, ${tables.identity}, ${tables.failedEvents}, ${tables.holds}, ${tables.lanes},
  ${tables.pipelines}, ${tables.instances};`;
  },
};

type Tables = ReturnType<typeof relayTables>;

// Frequently updated tables keep free space in their pages, so that updates stay in the page (HOT).
const ownershipSql = (tables: Tables) => `
create table ${tables.instances} (
  id uuid primary key,
  name text not null,
  pipelines text[] not null,
  lease_ms bigint not null check (lease_ms > 0),
  alive_until timestamptz not null,
  joined_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

create table ${tables.pipelines} (
  name text primary key,
  id uuid not null unique default gen_random_uuid(),
  source_schema text not null,
  source_table text not null,
  lanes int not null check (lanes between 1 and 1024),
  delivery text,
  last_poll_time timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);

create table ${tables.lanes} (
  pipeline text not null references ${tables.pipelines} (name) on delete cascade,
  lane int not null check (lane >= 0),
  owner uuid,
  epoch bigint not null default 0,
  settled_batch bigint not null default 0,
  crashes int not null default 0,
  published_total bigint not null default 0,
  last_event_id text,
  settled_at timestamptz,
  primary key (pipeline, lane)
) with (fillfactor = 50);`;

const failureSql = (tables: Tables) => `
create table ${tables.holds} (
  pipeline text not null,
  lane int not null,
  event_id text not null,
  event_key text,
  state text not null check (state in ('retrying', 'suspect', 'dead')),
  parks boolean not null,
  attempts int not null,
  crashes int not null default 0,
  next_at timestamptz,
  reason text not null,
  errors jsonb not null default '[]',
  first_failed_at timestamptz not null default clock_timestamp(),
  last_failed_at timestamptz not null default clock_timestamp(),
  primary key (pipeline, event_id)
);
create index holds_by_lane on ${tables.holds} (pipeline, lane);

create table ${tables.failedEvents} (
  id uuid primary key default gen_random_uuid(),
  pipeline text not null,
  original_event_id text not null,
  source_schema text not null,
  source_table text not null,
  event_type text not null,
  event_key text,
  payload bytea not null,
  headers jsonb,
  correlation_id text,
  event_created_at timestamptz,
  failure_reason text not null,
  failure_count int not null default 1,
  first_failed_at timestamptz not null default clock_timestamp(),
  last_failed_at timestamptz not null default clock_timestamp(),
  errors jsonb not null default '[]',
  created_at timestamptz not null default clock_timestamp(),
  unique (pipeline, original_event_id)
);
create index failed_events_by_source on ${tables.failedEvents} (source_schema, source_table);`;

// One row per table of events, whatever the number of pipelines that read it.
const stateViewSql = (tables: Tables) => `
create view ${tables.relayState} as
select (array_agg(p.id order by p.created_at, p.id))[1] as id,
  p.source_schema as schema_name,
  p.source_table as table_name,
  max(p.last_poll_time) as last_poll_time,
  (array_agg(l.last_event_id order by l.settled_at desc nulls last) filter (where l.last_event_id is not null))[1]
    as last_published_event_id,
  coalesce(sum(l.published_total), 0)::bigint as total_events_published,
  min(p.created_at) as created_at,
  greatest(max(p.updated_at), max(l.settled_at)) as updated_at
from ${tables.pipelines} p
left join ${tables.lanes} l on l.pipeline = p.name
group by p.source_schema, p.source_table;`;

const technicalEventsSql = (tables: Tables) => `
create table ${tables.technicalEvents} (
  id bigint generated always as identity primary key,
  at timestamptz not null,
  name text not null,
  pipeline text,
  record_id text,
  detail jsonb not null
);
create index technical_events_by_time on ${tables.technicalEvents} (at);
create index technical_events_by_record on ${tables.technicalEvents} (record_id) where record_id is not null;`;

/** Distinguishes two databases behind one service name. Managed servers may hide the system identifier. */
function identitySql(identity: string): string {
  let tag = "$relay$";
  while (identity.includes(tag)) tag = `$r${tag.length}${tag.slice(1)}`;
  return `
create table ${identity} (
  only_row boolean primary key default true check (only_row),
  uuid uuid not null default gen_random_uuid(),
  system_id text
);
do ${tag} begin
  insert into ${identity} (system_id) select system_identifier::text from pg_control_system();
exception when insufficient_privilege or undefined_function then
  insert into ${identity} (system_id) values (null);
end ${tag};`;
}
