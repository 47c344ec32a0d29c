import { displayTable, type TableName } from "../postgres/identifiers.ts";
import { AHEAD_MS, type ManagedFinding, type ManagedTable } from "../postgres/managed/managed-names.ts";
import { keepPartitions } from "../postgres/managed/managed-partitions.ts";
import { managedTableSql } from "../postgres/managed/managed-table.sql.ts";
import { readManaged, requireManaged } from "../postgres/managed/managed-table.ts";
import { buildSieve, hasSieve } from "../postgres/managed/sieve.ts";
import type { Database } from "../postgres/pool.ts";
import { transaction } from "../postgres/transaction.ts";

const STATEMENT_MS = 60_000;

/** Creates a managed outbox, or what of it is missing. True when it was not there. */
export async function createManaged(database: Database, options: ManagedTable): Promise<boolean> {
  const isNew = (await readManaged(database, options.table)) === null;
  const settings = {
    context: database.errorContext("creating a managed outbox", displayTable(options.table)),
    statementTimeoutMs: STATEMENT_MS,
    lockTimeoutMs: STATEMENT_MS,
  };
  await transaction(database.pool, settings, (session) => session.script(managedTableSql(options)));
  if (!isNew && !(await hasSieve(database, options.table))) await buildSieve(database, options.table);
  return isNew;
}

/** Creates the partitions that will soon be needed, and tells what a person should know. */
export async function upkeepManaged(database: Database, table: TableName): Promise<readonly ManagedFinding[]> {
  const { step } = await requireManaged(database, table);
  return (await keepPartitions(database, table, AHEAD_MS[step])).findings;
}
