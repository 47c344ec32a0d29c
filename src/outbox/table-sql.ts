import { parseTableName, quoteIdentifier, quoteTable } from "../postgres/identifiers.ts";

interface OutboxTableOptions {
  /** `json` keeps the text as written and can be queried; `bytea` stores any bytes. */
  readonly payload?: "json" | "bytea";
}

/**
 * SQL of a table to start with: a sequence for the order, a primary key for unique ids, a flag with a time, and an
 * index of waiting events. For a migration of the application; running it twice changes nothing.
 */
export function outboxTableSql(table: string, { payload = "json" }: OutboxTableOptions = {}): string {
  const name = parseTableName(table);
  const quoted = quoteTable(name);
  return `create schema if not exists ${quoteIdentifier(name.schema)};
create table if not exists ${quoted} (
  position bigint generated always as identity,
  id uuid primary key,
  event_type text not null,
  aggregate_id text,
  payload ${payload} not null,
  headers jsonb,
  correlation_id text,
  created_at timestamptz not null default clock_timestamp(),
  published_at timestamptz
);
create index if not exists ${quoteIdentifier(`${name.table}_waiting`.slice(0, 63))}
  on ${quoted} (position) where published_at is null;
`;
}
