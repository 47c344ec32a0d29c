import { displayTable, quoteIdentifier, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { inspectTable } from "../../sources/postgres/table-discovery.ts";
import type { DoctorSubject, Finding } from "./finding.ts";

const CANDIDATES = ["event_id", "id"];

/** While the first of two rows with one id is in flight, the log reader skips the second: ids must be unique. */
export async function checkIds({ columns, database }: DoctorSubject, table: TableName): Promise<readonly Finding[]> {
  return await inspectTable(database, table, ["select"], async (session, facts) => {
    const names = facts.columns.map(({ name }) => name);
    const id = columns.id ?? CANDIDATES.find((candidate) => names.includes(candidate));
    if (id === undefined) return [];
    const [row] = await session.rows(UNIQUE_SQL, [facts.oid, id]);
    if (row?.[0] !== "f") return [];
    const fix = `create unique index concurrently on ${quoteTable(table)} (${quoteIdentifier(id)});`;
    const what = `${displayTable(table)} has no unique index on ${id}: of two rows with one id the second may be skipped`;
    return [{ severity: "warning", check: "ids", what, fix }];
  });
}

/** A unique index on the column alone, on the table or on each of its partitions. */
const UNIQUE_SQL = `
select bool_and(exists (
  select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
  where i.indrelid = leaf.relid and i.indisunique and i.indisvalid and i.indnkeyatts = 1 and i.indpred is null
    and a.attname = $2))
from (select $1::oid::regclass as relid where not exists (select from pg_partition_tree($1::oid))
  union all select relid from pg_partition_tree($1::oid) where isleaf) leaf`;
