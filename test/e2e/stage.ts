import pg from "pg";
import { grantsFor } from "../../src/postgres/grants.ts";
import { quoteIdentifier } from "../../src/postgres/identifiers.ts";
import { migrateUp } from "../../src/postgres/migrations/migrate.ts";
import { openDatabase } from "../../src/postgres/pool.ts";
import { createTables, type OutboxTable } from "./outbox-tables.ts";

/** Where a database can be made: a server, or the address in front of a replicated pair. */
export interface Place {
  databaseUrl(name?: string, user?: string, password?: string): string;
  query(sql: string): Promise<unknown>;
}

export interface StageOptions {
  readonly database: string;
  readonly tables: readonly OutboxTable[];
  readonly relaySchema?: string;
}

/** A database of its own with outbox tables, the relay's schema and the relay's role, which has no right too many. */
export interface Stage extends AsyncDisposable {
  readonly url: string;
  /** As the least-privilege role. */
  readonly relayUrl: string;
  readonly role: string;
  /** As the superuser. */
  readonly pool: pg.Pool;
  /** One statement or several, as the superuser; the rows of the last. */
  sql<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

export async function openStage(place: Place, options: StageOptions): Promise<Stage> {
  const { database, tables, relaySchema = "outbox_relay" } = options;
  const role = `relay_${database}`;
  await place.query(`create database ${quoteIdentifier(database)} strategy file_copy`);
  await place.query(`create role ${quoteIdentifier(role)} login`);
  const url = place.databaseUrl(database);
  await migrate(url, relaySchema);
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  pool.on("error", () => {}); // the server is killed under it on purpose; the next statement tells
  await createTables(pool, tables);
  await pool.query(grantsFor({ role, relaySchema, tables }));
  return {
    url,
    relayUrl: place.databaseUrl(database, role, "secret"),
    role,
    pool,
    sql: async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) => {
      const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await pool.query<Row>(text, [...values]);
      return Array.isArray(result) ? (result.at(-1)?.rows ?? []) : result.rows;
    },
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

export async function migrate(url: string, relaySchema: string): Promise<void> {
  const database = openDatabase({ url, relaySchema });
  try {
    await migrateUp(database);
  } finally {
    await database.close();
  }
}
