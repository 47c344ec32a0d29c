import { quoteIdentifier, quoteTable } from "../postgres/identifiers.ts";
import type { Statement } from "../postgres/transaction-handle.ts";
import { type OutboxTable, ROW_PLACE } from "./outbox-table.ts";

/** Inserts one event, one parameter per column: planned in half the time of the statement for many. */
export function insertEvent(table: OutboxTable, columns: readonly string[]): Statement {
  const fixed = [...table.fixed].filter(([name]) => !columns.includes(name));
  const targets = [...columns, ...fixed.map(([name]) => name)].map(quoteIdentifier).join(", ");
  const times = fixed.map(([, sql]) => sql.replaceAll(ROW_PLACE, "1"));
  return (place) => {
    const values = columns.map(
      (name, at) => `${place(at + 1)}::text${castTo(table.columns.get(name)?.type ?? "text")}`,
    );
    return `insert into ${quoteTable(table.name)} (${targets}) values (${[...values, ...times].join(", ")}) ${table.conflict}
returning 1 as written`;
  };
}

/** A cast to a short column would silently truncate a text; the assignment without one fails instead. */
function castTo(type: string): string {
  return type.startsWith("character") || type === "text" ? "" : `::${type}`;
}
