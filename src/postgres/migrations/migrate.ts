import { RelayError } from "../../core/errors.ts";
import { quoteIdentifier, quoteLiteral } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import type { Session } from "../session.ts";
import { fixSettingsSql } from "../session-settings.ts";
import { transaction } from "../transaction.ts";
import type { Migration } from "./migration.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "./migrations.ts";

export interface MigrationStatus {
  /** 0 when there is no schema. */
  readonly version: number;
  readonly newest: number;
  readonly applied: readonly { readonly version: number; readonly name: string; readonly appliedAt: string }[];
  readonly pending: readonly { readonly version: number; readonly name: string }[];
}

/** DDL waits only for the locks of readers, never for a lease. */
const MIGRATE_STATEMENT_MS = 60_000;

/** Brings the schema to `to` (default: the newest version). Safe when several processes start at once. */
export async function migrateUp(database: Database, to = SCHEMA_VERSION): Promise<readonly Migration[]> {
  requireKnownVersion(to);
  return await locked(database, "migrating up", async (session) => {
    const version = await versionOf(session, database);
    await requireServed(session, database, version);
    const steps = MIGRATIONS.filter((migration) => migration.version > version && migration.version <= to);
    if (version === 0 && steps.length > 0) await createVersionTable(session, database);
    for (const step of steps) await session.script(stepUpSql(step, database.relaySchema));
    return steps;
  });
}

/** Rolls back to version `to`; 0 leaves nothing. All data in the dropped tables is lost. */
export async function migrateDown(database: Database, to: number): Promise<readonly Migration[]> {
  requireKnownVersion(to);
  return await locked(database, "migrating down", async (session) => {
    const version = await versionOf(session, database);
    if (version > SCHEMA_VERSION) throw newerSchema(database, version);
    const steps = MIGRATIONS.filter((migration) => migration.version <= version && migration.version > to).reverse();
    for (const step of steps) await session.script(stepDownSql(step, database.relaySchema));
    if (to === 0 && steps.length > 0) await dropSchema(session, database);
    return steps;
  });
}

/** The schema's version, and what is applied and pending. */
export async function migrationStatus(database: Database): Promise<MigrationStatus> {
  return await transaction(database.pool, settings(database, "reading the schema's version"), async (session) => {
    const version = await versionOf(session, database);
    const rows =
      version === 0
        ? []
        : await session.rows(
            `select version, name, applied_at::text from ${database.tables.schemaVersions} order by version`,
          );
    const applied = rows.map((row) => ({ version: Number(row[0]), name: row[1] ?? "", appliedAt: row[2] ?? "" }));
    const pending = MIGRATIONS.filter((migration) => migration.version > version);
    return {
      version,
      newest: SCHEMA_VERSION,
      applied,
      pending: pending.map(({ version, name }) => ({ version, name })),
    };
  });
}

/** The SQL of `migrateUp` or `migrateDown`, for running it with other tools. Reads no database. */
export function sqlOf(
  direction: "up" | "down",
  relaySchema: string,
  range: { from?: number; to?: number } = {},
): string {
  if (direction === "up") {
    const { from = 0, to = SCHEMA_VERSION } = range;
    const steps = MIGRATIONS.filter(({ version }) => version > from && version <= to);
    const first = from === 0 ? [createSchemaSql(relaySchema), versionTableSql(relaySchema)] : [];
    return inTransaction([...first, ...steps.map((step) => stepUpSql(step, relaySchema))]);
  }
  const { from = SCHEMA_VERSION, to = 0 } = range;
  const steps = MIGRATIONS.filter(({ version }) => version <= from && version > to).reverse();
  const last = to === 0 ? [dropVersionTableSql(relaySchema), dropSchemaSql(relaySchema)] : [];
  return inTransaction([...steps.map((step) => stepDownSql(step, relaySchema)), ...last]);
}

/** Throws unless the schema has this program's version, or a later one that still supports this program. */
export async function requireSchema(database: Database): Promise<void> {
  const version = await transaction(
    database.pool,
    settings(database, "reading the schema's version"),
    async (session) => {
      const found = await versionOf(session, database);
      await requireServed(session, database, found);
      return found;
    },
  );
  const name = JSON.stringify(database.relaySchema);
  if (version === 0) throw new RelayError("SCHEMA_MISSING", `The schema ${name} does not exist`);
  if (version < SCHEMA_VERSION) {
    throw new RelayError("SCHEMA_OLDER", `The schema ${name} has version ${version}, ${SCHEMA_VERSION} is needed`);
  }
}

/** Later migrations record the oldest program that they support. */
async function requireServed(session: Session, database: Database, version: number): Promise<void> {
  if (version <= SCHEMA_VERSION) return;
  const [row] = await session.rows(
    `select max(serves_from) from ${database.tables.schemaVersions} where version > ${SCHEMA_VERSION}`,
  );
  if (Number(row?.[0]) > SCHEMA_VERSION) throw newerSchema(database, version);
}

function newerSchema(database: Database, version: number): RelayError {
  const name = JSON.stringify(database.relaySchema);
  return new RelayError(
    "SCHEMA_NEWER",
    `The schema ${name} has version ${version}, this program supports ${SCHEMA_VERSION}`,
  );
}

function requireKnownVersion(to: number): void {
  if (Number.isInteger(to) && to >= 0 && to <= SCHEMA_VERSION) return;
  throw new RelayError("CONFIG_INVALID", `${to} is not a version of the schema; versions are 0 to ${SCHEMA_VERSION}`);
}

function settings(database: Database, doing: string) {
  return {
    context: database.errorContext(doing),
    statementTimeoutMs: MIGRATE_STATEMENT_MS,
    lockTimeoutMs: MIGRATE_STATEMENT_MS,
  };
}

/** The advisory lock belongs to the transaction, so it ends with it in any case and works behind a pooler. */
async function locked<T>(database: Database, doing: string, work: (session: Session) => Promise<T>): Promise<T> {
  return await transaction(database.pool, settings(database, doing), async (session) => {
    const name = quoteLiteral(`outbox-relay migrations of ${database.relaySchema}`);
    await session.rows(`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`);
    return await work(session);
  });
}

/**
 * Reads the catalog, because a missing table would raise an error and a hidden one must not look like a missing one.
 */
async function versionOf(session: Session, database: Database): Promise<number> {
  const [found] = await session.rows(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1 and c.relname = 'schema_versions' and c.relkind = 'r'`,
    [database.relaySchema],
  );
  if (!found) return 0;
  const [row] = await session.rows(`select coalesce(max(version), 0) from ${database.tables.schemaVersions}`);
  return Number(row?.[0]);
}

/** `create schema if not exists` requires the right to create schemas even when there is nothing to do. */
async function createVersionTable(session: Session, database: Database): Promise<void> {
  const [there] = await session.rows("select 1 from pg_catalog.pg_namespace where nspname = $1", [
    database.relaySchema,
  ]);
  if (!there) await session.script(createSchemaSql(database.relaySchema));
  await session.script(versionTableSql(database.relaySchema));
}

/** Drops the schema only if nothing else is in it. */
async function dropSchema(session: Session, database: Database): Promise<void> {
  await session.script(dropVersionTableSql(database.relaySchema));
  const [other] = await session.rows(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1 limit 1`,
    [database.relaySchema],
  );
  if (!other) await session.script(dropSchemaSql(database.relaySchema));
}

const createSchemaSql = (relaySchema: string) => `create schema ${quoteIdentifier(relaySchema)};`;
const dropSchemaSql = (relaySchema: string) => `drop schema ${quoteIdentifier(relaySchema)} restrict;`;
const versionTable = (relaySchema: string) => `${quoteIdentifier(relaySchema)}.schema_versions`;
const dropVersionTableSql = (relaySchema: string) => `drop table ${versionTable(relaySchema)};`;
const versionTableSql = (relaySchema: string) => `create table ${versionTable(relaySchema)} (
  version int primary key,
  name text not null,
  serves_from int not null,
  applied_at timestamptz not null default clock_timestamp()
);`;

function stepUpSql({ version, name, servesFrom = version, up }: Migration, relaySchema: string): string {
  const row = `(${version}, ${quoteLiteral(name)}, ${servesFrom})`;
  return `${up(relaySchema)}\ninsert into ${versionTable(relaySchema)} (version, name, serves_from) values ${row};`;
}

function stepDownSql({ version, down }: Migration, relaySchema: string): string {
  return `${down(relaySchema)}\ndelete from ${versionTable(relaySchema)} where version = ${version};`;
}

function inTransaction(steps: readonly string[]): string {
  const begin = `begin transaction isolation level read committed, read write;\n${fixSettingsSql()};`;
  return `${begin}\n${steps.join("\n")}\ncommit;\n`;
}
