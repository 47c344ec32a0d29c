import { quoteLiteral } from "../../postgres/identifiers.ts";
import { statement } from "../../postgres/transaction.ts";
import { type OperationTarget, operationReadSettings } from "./event-source.ts";

/** Rows of a table and its partitions as of the last vacuum or analyze; null before the first. */
export async function estimatedRows({ database }: OperationTarget, quotedName: string): Promise<number | null> {
  const table = `${quoteLiteral(quotedName)}::regclass`;
  const [row] = await statement(
    database.pool,
    operationReadSettings(database, "estimating how many events there are"),
    `select round(sum(c.reltuples))::bigint from pg_catalog.pg_class c where c.relkind <> 'p' and c.reltuples >= 0
       and (c.oid = ${table} or c.oid in (select relid from pg_catalog.pg_partition_tree(${table})))`,
  );
  return row?.[0] == null ? null : Number(row[0]);
}
