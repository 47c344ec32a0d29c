import { quoteIdentifier, quoteTable } from "../postgres/identifiers.ts";
import type { Statement } from "../postgres/transaction-handle.ts";
import type { OutboxTable } from "./outbox-table.ts";

/**
 * Inserts events in the order of the parameter, a JSON array of objects by column; ids that exist change nothing. One
 * parameter, so that all handles bind it alike and the plan never changes.
 */
export function insertEvents(table: OutboxTable, columns: readonly string[]): Statement {
  const names = columns.map(quoteIdentifier);
  const fixed = [...table.fixed].filter(([name]) => !columns.includes(name));
  const targets = [...names, ...fixed.map(([name]) => quoteIdentifier(name))].join(", ");
  const values = [...columns.map((name) => selected(table, name)), ...fixed.map(([, sql]) => sql)].join(", ");
  const fields = columns.map((name) => `${quoteIdentifier(name)} ${fieldType(table, name)}`).join(", ");
  return (place) => `
with added as (
  insert into ${quoteTable(table.name)} (${targets})
  select ${values}
  from rows from (pg_catalog.json_to_recordset(${place(1)}::text::json) as (${fields})) with ordinality as e(${names.join(", ")}, "#")
  order by e."#" ${table.conflict}
  returning 1
)
select pg_catalog.count(*)::int as written from added`;
}

/**
 * The JSON payload travels as a text inside the JSON parameter: parsed as nested JSON, an escaped zero character in it
 * would be refused.
 */
function isJsonPayload({ payload }: OutboxTable, name: string): boolean {
  return payload.name === name && /^jsonb?$/.test(payload.baseType);
}

function fieldType(table: OutboxTable, name: string): string {
  return isJsonPayload(table, name) ? "text" : (table.columns.get(name)?.type ?? "text");
}

function selected(table: OutboxTable, name: string): string {
  const value = `e.${quoteIdentifier(name)}`;
  return isJsonPayload(table, name) ? `${value}::${table.payload.type}` : value;
}
