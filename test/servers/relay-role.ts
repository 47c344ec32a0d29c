import { grantsFor } from "../../src/postgres/grants.ts";
import type { TableName } from "../../src/postgres/identifiers.ts";
import { migrateUp } from "../../src/postgres/migrations/migrate.ts";
import { type Database, openDatabase } from "../../src/postgres/pool.ts";
import type { PostgresServer } from "./postgres.ts";

/** Makes the relay's schema and these tables, and connects as a role that has the printed grants alone. */
export async function openAsRelay(
  server: PostgresServer,
  tables: Readonly<{ sql: string; names: readonly TableName[] }> = { sql: "", names: [] },
): Promise<Database> {
  const owner = openDatabase({ url: server.url });
  await migrateUp(owner);
  await owner.close();
  await server.query(`create role relay login; ${tables.sql}`);
  await server.query(grantsFor({ role: "relay", tables: [...tables.names] }));
  return openDatabase({ url: server.databaseUrl("postgres", "relay") });
}
