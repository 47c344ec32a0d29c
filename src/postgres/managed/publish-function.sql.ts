import { quoteIdentifier, quoteTable } from "../identifiers.ts";
import { dollarQuoted } from "./dollar-quoted.ts";
import { type ManagedTable, managedNames } from "./managed-names.ts";

/**
 * The SQL function that writes one event in the caller's transaction, from any language. It returns the event's id, or
 * null when the id already exists.
 */
export function publishFunctionSql({ table, payload }: Pick<ManagedTable, "table" | "payload">): string {
  const name = `${quoteIdentifier(table.schema)}.${quoteIdentifier(managedNames(table).publish)}`;
  const body = `
  insert into ${quoteTable(table)} as o (event_id, event_type, event_key, payload, headers, correlation_id)
  values ($6, $1, $2, $3, $4, $5)
  on conflict do nothing
  returning o.event_id
`;
  return `create or replace function ${name}(
  event_type text,
  event_key text,
  payload ${payload},
  headers jsonb default null,
  correlation_id text default null,
  event_id uuid default gen_random_uuid()
) returns uuid language sql volatile security invoker as ${dollarQuoted(body)};`;
}
