import { quoteTable, type TableName } from "./identifiers.ts";

interface WantedIndex {
  readonly table: TableName;
  /** Quoted, with commas. */
  readonly columns: string;
  readonly where?: string;
  readonly isPartitioned: boolean;
}

/** The statement that messages tell people to run. PostgreSQL builds no index of a partitioned table concurrently. */
export function createIndexSql({ table, columns, where, isPartitioned }: WantedIndex): string {
  const on = `on ${quoteTable(table)} (${columns})${where === undefined ? "" : ` where ${where}`};`;
  if (!isPartitioned) return `create index concurrently ${on}`;
  return `create index ${on} -- blocks writes until it is built: the table is partitioned`;
}
