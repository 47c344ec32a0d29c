import { randomUUID } from "node:crypto";
import { RelayError } from "../../core/errors.ts";
import { CANDIDATES, type ColumnNames } from "../../postgres/column-names.ts";
import { displayTable, quoteIdentifier, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { Row, Session } from "../../postgres/session.ts";

interface Column {
  readonly name: string;
  readonly type: string;
  readonly baseType: string;
  readonly isRequired: boolean;
  readonly hasDefault: boolean;
}

interface SmokeEvent {
  readonly type: string;
  readonly key: string;
  readonly payload: string;
}

/**
 * Writes the event as a service would: its own columns, and all others that the table requires. Returns the id that
 * `idSql` gives for the row `t`: in a log the column `id` is the position, not the event's id.
 */
export async function insertSmokeEvent(
  session: Session,
  table: TableName,
  names: ColumnNames,
  event: SmokeEvent,
  idSql: string,
): Promise<string> {
  const columns = (await session.rows(COLUMNS_SQL, [quoteTable(table)])).map(columnOf);
  const roleOf = rolesIn(columns, names);
  const values = columns.flatMap((column) => {
    const value = columnValue(table, column, roleOf.get(column.name), event);
    return value === undefined ? [] : [{ column, value }];
  });
  const list = values.map(({ column }) => quoteIdentifier(column.name)).join(", ");
  const places = values.map(({ column }, at) => `$${at + 1}::text::${column.type}`).join(", ");
  const [row] = await session.rows(
    `insert into ${quoteTable(table)} as t (${list}) values (${places}) returning (${idSql})::text`,
    values.map(({ value }) => value),
  );
  return row?.[0] ?? "";
}

const MANAGED_KEY = "event_key";

type RoleName = "id" | "type" | "key" | "payload" | "intent" | "status" | "createdAt";

function rolesIn(columns: readonly Column[], names: ColumnNames): ReadonlyMap<string, RoleName> {
  const roles = new Map<string, RoleName>();
  const there = new Set(columns.map(({ name }) => name));
  for (const role of ["id", "type", "key", "payload", "status", "createdAt"] as const) {
    const name = names[role] === undefined ? CANDIDATES[role].find((it) => there.has(it)) : names[role];
    if (name != null) roles.set(name, role);
  }
  // The column's name in a managed outbox.
  if (![...roles.values()].includes("key") && there.has(MANAGED_KEY)) roles.set(MANAGED_KEY, "key");
  const [intent] = CANDIDATES.intent;
  if (there.has(intent)) roles.set(intent, "intent");
  return roles;
}

/** Undefined leaves the column to its default or null. */
function columnValue(
  table: TableName,
  column: Column,
  role: RoleName | undefined,
  event: SmokeEvent,
): string | undefined {
  if (role === "type") return event.type;
  if (role === "payload") return bytesOrText(column, event.payload);
  if (role === "intent") return JSON.stringify({ type: event.type, ...(JSON.parse(event.payload) as object) });
  if (column.hasDefault) return undefined;
  if (role === "id") return anyValue(table, column, randomUUID());
  if (role === "key") return /text|char/.test(column.baseType) ? event.key : anyValue(table, column, event.key);
  if (role === "status") return "Pending";
  if (!column.isRequired) return role === "createdAt" ? new Date().toISOString() : undefined;
  return anyValue(table, column, event.key);
}

function bytesOrText({ baseType }: Column, text: string): string {
  return baseType === "bytea" ? `\\x${Buffer.from(text).toString("hex")}` : text;
}

function anyValue(table: TableName, { baseType, name }: Column, text: string): string {
  if (/text|char/.test(baseType)) return text;
  if (baseType === "uuid") return randomUUID();
  if (/int|numeric|double|real/.test(baseType)) return "0";
  if (baseType === "boolean") return "false";
  if (/^(?:timestamp|date)/.test(baseType)) return new Date().toISOString();
  if (baseType === "json" || baseType === "jsonb") return "{}";
  if (baseType === "bytea") return "\\x";
  const what = `Column ${name} of ${displayTable(table)} is ${baseType}, and the smoke test has no value for this type`;
  throw new RelayError("COLUMN_MISTYPED", what);
}

const COLUMNS_SQL = `
select a.attname, format_type(a.atttypid, a.atttypmod),
  format_type(case when t.typtype = 'd' then t.typbasetype else a.atttypid end, null),
  a.attnotnull, a.atthasdef or a.attidentity <> '' or a.attgenerated <> ''
from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`;

function columnOf(row: Row): Column {
  return {
    name: row[0] ?? "",
    type: row[1] ?? "",
    baseType: row[2] ?? "",
    isRequired: row[3] === "t",
    hasDefault: row[4] === "t",
  };
}
