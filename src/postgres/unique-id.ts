import { RelayError } from "../core/errors.ts";
import type { ColumnInfo } from "./column-names.ts";
import { displayTable, quoteIdentifier, quoteTable, type TableName } from "./identifiers.ts";
import type { Session } from "./session.ts";

/** What the catalog says about the rows' identity. */
export interface KeyFacts {
  /** Columns with a unique index of their own, over all rows. */
  readonly uniqueColumns: readonly string[];
  /** In the order of the key; empty without one. */
  readonly primaryKey: readonly string[];
  /** A unique index of a partitioned table must contain the partition key, so there may be none on the id alone. */
  readonly isPartitioned: boolean;
}

/** Reads the table's keys from the catalog. */
export async function readKeyFacts(
  session: Session,
  { oid, isPartitioned }: { readonly oid: string; readonly isPartitioned: boolean },
): Promise<KeyFacts> {
  const indexes = await session.rows(UNIQUE_INDEXES_SQL, [oid]);
  const columnsOf = (text: string | null | undefined) => JSON.parse(text ?? "[]") as readonly string[];
  const keys = indexes.map((row) => ({ isPrimary: row[0] === "t", columns: columnsOf(row[1]) }));
  return {
    uniqueColumns: keys.flatMap(({ columns }) => (columns.length === 1 ? columns : [])),
    primaryKey: keys.find(({ isPrimary }) => isPrimary)?.columns ?? [],
    isPartitioned,
  };
}

/** Not partial, not over expressions, and checked immediately. Included columns do not count. */
const UNIQUE_INDEXES_SQL = `
select i.indisprimary, (
  select pg_catalog.json_agg(a.attname order by k.place)
  from pg_catalog.unnest(i.indkey) with ordinality k (attnum, place)
  join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
  where k.place <= i.indnkeyatts)
from pg_catalog.pg_index i
where i.indrelid = $1::oid and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null
  and i.indexprs is null`;

/**
 * Throws ID_NOT_UNIQUE unless the id is unique. Rows are marked and held by their ids alone: of two rows with one id
 * only one would be sent, and both would be marked.
 */
export function requireUniqueId(
  table: TableName,
  id: Pick<ColumnInfo, "name" | "baseType" | "isSequence">,
  { uniqueColumns, primaryKey, isPartitioned }: KeyFacts,
): void {
  if (uniqueColumns.includes(id.name)) return;
  // No index can guarantee it there. A generated id is unique in practice, and a settle that finds a duplicate refuses
  // to mark.
  if (isPartitioned && (id.baseType === "uuid" || id.isSequence)) return;
  const key = primaryKey.length === 0 ? "no primary key" : `the primary key (${primaryKey.join(", ")})`;
  const what = `Column ${id.name} of ${displayTable(table)} is used as the event id but is not unique: the table has ${key}`;
  throw new RelayError("ID_NOT_UNIQUE", `${what}. ${uniqueIdFix(table, id.name, isPartitioned)}`);
}

function uniqueIdFix(table: TableName, id: string, isPartitioned: boolean): string {
  if (isPartitioned) return "Use an id of type uuid or with a sequence.";
  return `Run: create unique index concurrently on ${quoteTable(table)} (${quoteIdentifier(id)});`;
}
