create schema if not exists "shop";
create table if not exists "shop"."outbox" (
  position bigint generated always as identity,
  id uuid primary key,
  event_type text not null,
  aggregate_id text,
  payload json not null,
  headers jsonb,
  correlation_id text,
  created_at timestamptz not null default pg_catalog.clock_timestamp(),
  published_at timestamptz
);
create index if not exists "outbox_waiting"
  on "shop"."outbox" (position) where published_at is null;
