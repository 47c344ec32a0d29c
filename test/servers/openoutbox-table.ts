/** The table as its contract has it, indexes included. */
export const openOutboxTableSql = (table: string): string => `
create table ${table} (
  event_id uuid primary key, event_type text not null, partition_key text, payload bytea not null,
  headers jsonb not null default '{}', status text not null default 'PENDING', attempts int not null default 0,
  last_error text, available_at timestamptz not null default now(), locked_by text, locked_at timestamptz,
  delivered_at timestamptz, created_at timestamptz not null default now(), updated_at timestamptz not null default now(),
  constraint check_valid_status check (status in ('PENDING', 'DELIVERING', 'DELIVERED', 'DEAD')));
create index on ${table} (available_at, created_at) where status = 'PENDING';
create index on ${table} (locked_at) where status = 'DELIVERING';`;
