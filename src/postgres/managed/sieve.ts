import type { PoolClient } from "pg";
import { translateError } from "../errors.ts";
import { displayTable, quoteIdentifier, quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import { statement } from "../transaction.ts";
import { managedNames, upkeepLock } from "./managed-names.ts";

/**
 * What finds the events of a key or a correlation id: per 64 blocks the times that they hold and a filter that says of
 * all but one in a thousand values that they are not there; larger ones do not fit into a block of an index. A tree would
 * be exact, and would double what a batch of inserts costs.
 */
const BLOOM = "text_bloom_ops (false_positive_rate = 0.001)";
const SIEVE = `using brin (created_at, event_key ${BLOOM}, correlation_id ${BLOOM}) with (pages_per_range = 64)`;

/** Blocks have no filter until a vacuum comes by, and without one they are read: so it comes by the number of rows. */
export const SIEVED_STORAGE = "autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000";

/** For a new table: with all partitions that it will have. */
export function createSieveSql(table: TableName): string {
  return `create index ${quoteIdentifier(managedNames(table).sieve)} on ${quoteTable(table)} ${SIEVE};`;
}

/** For a table that is there: from now on new partitions have it. Those with rows get it by `buildSieve`. */
export function prepareSieveSql(table: TableName): string {
  return `if to_regclass(${quoteLiteral(sieveOf(table))}) is null then
      create index ${quoteIdentifier(managedNames(table).sieve)} on only ${quoteTable(table)} ${SIEVE};
    end if;`;
}

function sieveOf(table: TableName): string {
  return quoteTable({ schema: table.schema, table: managedNames(table).sieve });
}

/** True once every partition has it. */
export async function hasSieve(database: Database, table: TableName): Promise<boolean> {
  const settings = {
    context: database.errorContext("looking for the indexes", displayTable(table)),
    statementTimeoutMs: database.timeouts.readMs,
    readOnly: true,
  };
  const text = `select i.indisvalid from pg_catalog.pg_index i where i.indexrelid = to_regclass(${quoteLiteral(sieveOf(table))})`;
  const [row] = await statement(database.pool, settings, text);
  return row?.[0] === "t";
}

/** Gives it to partitions that were there before it was, one after the other. Nobody who writes waits for it. */
export async function buildSieve(database: Database, table: TableName): Promise<void> {
  const context = database.errorContext("building an index of the managed outbox", displayTable(table));
  const client = await database.pool.connect().catch((error: unknown) => {
    throw translateError(error, context);
  });
  try {
    await client.query("set statement_timeout = 0; set lock_timeout = 0");
    if (await lock(client, table))
      for (const name of await partitionsWithout(client, table)) await build(client, table, name);
  } catch (error) {
    throw translateError(error, context);
  } finally {
    // Settings and lock end with the connection.
    client.release(true);
  }
}

/** Whoever finds it taken leaves the work to the other. Waiting for it would keep the other from finishing. */
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
    [quoteTable(table), sieveOf(table)],
  );
  return rows.map(({ name }) => name);
}

async function build(client: PoolClient, table: TableName, partition: string): Promise<void> {
  const bySieve = `select pg_catalog.format('%I.%I', n.nspname, c.relname) as name, i.indisvalid as valid
    from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace join pg_catalog.pg_am a on a.oid = c.relam
    where i.indrelid = pg_catalog.to_regclass($1) and a.amname = 'brin' and pg_catalog.pg_get_indexdef(i.indexrelid) like '%text_bloom_ops%'`;
  const found = async () => (await client.query<{ name: string; valid: string }>(bySieve, [partition])).rows;
  // A build that was broken off leaves an index behind that is of no use.
  for (const { name, valid } of await found()) if (valid !== "t") await client.query(`drop index concurrently ${name}`);
  await client.query(`alter table ${partition} set (${SIEVED_STORAGE})`);
  if ((await found()).length === 0) await client.query(`create index concurrently on ${partition} ${SIEVE}`);
  const [index] = await found();
  if (index !== undefined) await client.query(`alter index ${sieveOf(table)} attach partition ${index.name}`);
}
