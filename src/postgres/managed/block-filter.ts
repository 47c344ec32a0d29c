import type { PoolClient } from "pg";
import { translateError } from "../errors.ts";
import { displayTable, quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import { fixSessionSql } from "../session-settings.ts";
import { statement } from "../transaction.ts";
import { managedNames, upkeepLock } from "./managed-names.ts";

/**
 * A block filter (BRIN) to find the events of a key or a correlation id: for every 64 blocks it stores their time range
 * and a Bloom filter with a false positive rate of 0.1 %; larger filters do not fit into an index block. A B-tree would
 * be exact, but would double the cost of a batch of inserts.
 */
const BLOOM = "text_bloom_ops (false_positive_rate = 0.001)";
const BLOCK_FILTER = `using brin (created_at, event_key ${BLOOM}, correlation_id ${BLOOM}) with (pages_per_range = 64)`;

/**
 * Blocks have no filter until a vacuum, and without one they are read. So autovacuum runs by the number of inserted
 * rows.
 */
export const BLOCK_FILTER_STORAGE =
  "autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000";

/** For a new table: all future partitions get the index. */
export function createBlockFilterSql(table: TableName): string {
  return `create index ${quoteIdentifier(managedNames(table).blockFilter)} on ${quoteTable(table)} ${BLOCK_FILTER};`;
}

/**
 * For an existing table: new partitions get the index from now on. `buildBlockFilter` builds it for those with rows.
 */
export function prepareBlockFilterSql(table: TableName): string {
  return `if to_regclass(${quoteLiteral(blockFilterOf(table))}) is null then
      create index ${quoteIdentifier(managedNames(table).blockFilter)} on only ${quoteTable(table)} ${BLOCK_FILTER};
    end if;`;
}

function blockFilterOf(table: TableName): string {
  return quoteTable({ schema: table.schema, table: managedNames(table).blockFilter });
}

/** True once every partition has the index. */
export async function hasBlockFilter(database: Database, table: TableName): Promise<boolean> {
  const settings = {
    context: database.errorContext("searching for the indexes", displayTable(table)),
    statementTimeoutMs: database.timeouts.readMs,
    readOnly: true,
  };
  const text = `select i.indisvalid from pg_catalog.pg_index i where i.indexrelid = to_regclass(${quoteLiteral(blockFilterOf(table))})`;
  const [row] = await statement(database.pool, settings, text);
  return row?.[0] === "t";
}

/** A concurrent build cannot run in a transaction, so its settings are those of the session. */
const UNLIMITED = {
  statement_timeout: "0",
  lock_timeout: "0",
  default_transaction_isolation: "read committed",
  default_transaction_read_only: "off",
};

/** Builds the index on existing partitions, one after the other. No writer waits for it. */
export async function buildBlockFilter(database: Database, table: TableName): Promise<void> {
  const context = database.errorContext("building an index of the managed outbox", displayTable(table));
  const client = await database.pool.connect().catch((error: unknown) => {
    throw translateError(error, context);
  });
  try {
    await client.query(fixSessionSql(UNLIMITED));
    if (await lock(client, table))
      for (const name of await partitionsWithout(client, table)) await build(client, table, name);
  } catch (error) {
    throw translateError(error, context);
  } finally {
    // Settings and lock end with the connection; behind a pooler that keeps it, the settings end here.
    await client.query("reset all").catch(() => {});
    client.release(true);
  }
}

/** If another process holds the lock, the work is left to it. Waiting would keep that process from finishing. */
async function lock(client: PoolClient, table: TableName): Promise<boolean> {
  const name = quoteLiteral(`${upkeepLock(table)}, sieve`);
  const { rows } = await client.query<{ taken: string }>(
    `select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended(${name}, 0)) as taken`,
  );
  return rows[0]?.taken === "t";
}

async function partitionsWithout(client: PoolClient, table: TableName): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select pg_catalog.format('%I.%I', n.nspname, c.relname) as name from pg_catalog.pg_inherits p
       join pg_catalog.pg_class c on c.oid = p.inhrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where p.inhparent = pg_catalog.to_regclass($1) and not exists (
       select from pg_catalog.pg_inherits x join pg_catalog.pg_index i on i.indexrelid = x.inhrelid
       where x.inhparent = pg_catalog.to_regclass($2) and i.indrelid = p.inhrelid)`,
    [quoteTable(table), blockFilterOf(table)],
  );
  return rows.map(({ name }) => name);
}

async function build(client: PoolClient, table: TableName, partition: string): Promise<void> {
  const filterIndexesSql = `select pg_catalog.format('%I.%I', n.nspname, c.relname) as name, i.indisvalid as valid
    from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace join pg_catalog.pg_am a on a.oid = c.relam
    where i.indrelid = pg_catalog.to_regclass($1) and a.amname = 'brin' and pg_catalog.pg_get_indexdef(i.indexrelid) like '%text_bloom_ops%'`;
  const found = async () => (await client.query<{ name: string; valid: string }>(filterIndexesSql, [partition])).rows;
  // An interrupted build leaves an unusable index behind.
  for (const { name, valid } of await found()) if (valid !== "t") await client.query(`drop index concurrently ${name}`);
  await client.query(`alter table ${partition} set (${BLOCK_FILTER_STORAGE})`);
  if ((await found()).length === 0) await client.query(`create index concurrently on ${partition} ${BLOCK_FILTER}`);
  const [index] = await found();
  if (index !== undefined) await client.query(`alter index ${blockFilterOf(table)} attach partition ${index.name}`);
}
