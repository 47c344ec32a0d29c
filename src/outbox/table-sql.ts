import { parseTableName, quoteIdentifier, quoteTable } from "../postgres/identifiers.ts";

interface OutboxTableOptions {
  /** `json` keeps the text as it was written and can be queried; `bytea` takes any bytes. */
  readonly payload?: "json" | "bytea";
}

/**
 * The table to begin with: a sequence for the order, a key that makes ids unique, a flag with a time, and an index of
 * what waits. For a migration of the application's own; running it twice changes nothing.
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
