create schema time_tracking;

create table time_tracking.entries (
  id text primary key,
  user_id text not null,
  hours numeric not null,
  state text not null default 'submitted' check (state in ('submitted', 'approved', 'rejected'))
);

-- One row per intent. The relay reads it, and writes the last three columns.
create table time_tracking.intents (
  id uuid primary key default gen_random_uuid(),
  intent jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  delivered_at timestamptz,
  attempt_count int not null default 0,
  last_error text
);
create index on time_tracking.intents (created_at) where delivered_at is null;
