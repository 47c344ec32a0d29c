import { displayTable, type TableName } from "../../postgres/identifiers.ts";
import { buildBlockFilter, hasBlockFilter } from "../../postgres/managed/block-filter.ts";
import { AHEAD_MS, type ManagedFinding, type ManagedTable } from "../../postgres/managed/managed-names.ts";
import { keepPartitions, upkeepFault } from "../../postgres/managed/managed-partitions.ts";
import { managedTableSql } from "../../postgres/managed/managed-table.sql.ts";
import { readManaged, requireManaged } from "../../postgres/managed/managed-table.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";

const STATEMENT_MS = 60_000;

/** Creates a managed outbox, or its missing parts. True when it did not exist. */
export async function createManaged(database: Database, options: ManagedTable): Promise<boolean> {
  const isNew = (await readManaged(database, options.table)) === null;
  const settings = {
    context: database.errorContext("creating a managed outbox", displayTable(options.table)),
    statementTimeoutMs: STATEMENT_MS,
    lockTimeoutMs: STATEMENT_MS,
  };
  await transaction(database.pool, settings, (session) => session.script(managedTableSql(options)));
  if (!isNew && !(await hasBlockFilter(database, options.table))) await buildBlockFilter(database, options.table);
  return isNew;
}

/** Throws where the upkeep would fail later, although nothing needs to be done yet. */
export async function requireUpkeep(database: Database, table: TableName): Promise<void> {
  const fault = await upkeepFault(database, await requireManaged(database, table));
  if (fault !== null) throw fault;
}

/** Creates partitions ahead of time, and returns what an operator should know. */
export async function upkeepManaged(database: Database, table: TableName): Promise<readonly ManagedFinding[]> {
  const { step } = await requireManaged(database, table);
  return (await keepPartitions(database, table, AHEAD_MS[step])).findings;
}
