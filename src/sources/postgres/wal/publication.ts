import { isRelayError, RelayError } from "../../../core/errors.ts";
import { displayTable, quoteIdentifier, quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Session } from "../../../postgres/session.ts";
import { transaction } from "../../../postgres/transaction.ts";
import { derivedName } from "./slot.ts";

/** A publication that the reading needs. */
export interface Publication {
  readonly name: string;
  /** Null: for messages only, which every publication includes. */
  readonly table: TableName | null;
  /** The table's columns that its rows must include. */
  readonly columns: readonly string[];
}

function creationSql({ name, table }: Publication): string {
  const quoted = quoteIdentifier(name);
  if (table === null) return `create publication ${quoted} with (publish = 'insert')`;
  // Rows of partitions are then published as rows of the configured table.
  const options = "publish = 'insert', publish_via_partition_root = true";
  return `create publication ${quoted} for table ${quoteTable(table)} with (${options})`;
}

/** The name of the relay's own publication for this table, or for messages where there is no table. */
export function publicationOf(table: TableName | null): string {
  const name = table === null ? "messages" : displayTable(table);
  return derivedName(name, name);
}

/** The statement by which the owner creates the relay's own publication; null when one of this name exists. */
export async function missingPublicationSql(session: Session, table: TableName | null): Promise<string | null> {
  const name = publicationOf(table);
  const rows = await session.rows("select from pg_catalog.pg_publication where pubname = $1", [name]);
  return rows.length > 0 ? null : `${creationSql({ name, table, columns: [] })};`;
}

/** Creates the publication if it is missing and the role is allowed to. */
export async function ensurePublication(database: Database, publication: Publication): Promise<void> {
  if (await isThere(database, publication)) return;
  const context = database.errorContext(`creating the publication ${publication.name}`);
  try {
    const settings = { context, statementTimeoutMs: database.timeouts.statementMs };
    await transaction(database.pool, settings, (session) => session.rows(creationSql(publication)));
  } catch (error) {
    const { code } = ((error as Error).cause ?? {}) as { readonly code?: string };
    // Another instance created it first.
    if (code === "42710") return;
    if (!isRelayError(error, "GRANT_MISSING")) throw error;
    const what = `The role ${database.role} may not create the publication ${publication.name}; its owner runs: ${creationSql(publication)};`;
    throw new RelayError("GRANT_MISSING", what, { cause: error });
  }
}

/**
 * Checks that inserts into the table are published completely. Throws TABLE_MISSING or COLUMN_MISSING with the
 * statement that fixes it.
 */
export async function requirePublication(database: Database, publication: Publication): Promise<void> {
  if (await isThere(database, publication)) return;
  const what = `The publication ${publication.name} does not exist: events written now are never published. Run: ${creationSql(publication)};`;
  throw new RelayError("TABLE_MISSING", what);
}

async function isThere(database: Database, { columns, name, table }: Publication): Promise<boolean> {
  const settings = {
    context: database.errorContext(`reading the publication ${name}`),
    statementTimeoutMs: database.timeouts.statementMs,
    readOnly: true,
  };
  return await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows("select p.pubinsert from pg_catalog.pg_publication p where p.pubname = $1", [
      name,
    ]);
    if (row === undefined) return false;
    if (table === null) return true;
    if (row[0] !== "t") {
      const fix = `alter publication ${quoteIdentifier(name)} set (publish = 'insert');`;
      throw new RelayError("TABLE_MISSING", `The publication ${name} leaves inserts out. Run: ${fix}`);
    }
    await requireMember(session, name, table);
    const [limit] = await publicationLimits(session, name, table);
    const fix = `Run: ${wholeTableSql(name, table)}`;
    if (limit?.rowFilter != null) throw new RelayError("TABLE_MISSING", `${rowsLeftOut(limit, table)}. ${fix}`);
    const lacking = columns.filter((column) => limit?.lacking.includes(column));
    if (lacking.length > 0) {
      throw new RelayError("COLUMN_MISSING", `${columnsLeftOut({ ...limit!, lacking }, table)}. ${fix}`);
    }
    return true;
  });
}

async function requireMember(session: Session, name: string, table: TableName): Promise<void> {
  const [row] = await session.rows(
    `select c.relkind,
       exists (select from pg_catalog.pg_publication_tables m
         where m.pubname = $1 and m.schemaname = $2 and m.tablename = $3)
     from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $2 and c.relname = $3 and c.relkind in ('r', 'p')`,
    [name, table.schema, table.table],
  );
  if (row === undefined) throw new RelayError("TABLE_MISSING", `The table ${displayTable(table)} does not exist`);
  if (row[1] === "t") return;
  const quoted = quoteIdentifier(name);
  const fix =
    row[0] === "p"
      ? `alter publication ${quoted} set (publish_via_partition_root = true); and, unless it includes the table already: alter publication ${quoted} add table ${quoteTable(table)};`
      : `alter publication ${quoted} add table ${quoteTable(table)};`;
  const what = `The publication ${name} does not include ${displayTable(table)}: events written there are never published. Run: ${fix}`;
  throw new RelayError("TABLE_MISSING", what);
}

/** What a publication leaves out of a table. */
interface PublicationLimit {
  readonly publication: string;
  /** Only rows for which this is true are published; null for all rows. */
  readonly rowFilter: string | null;
  /** Columns of the table that are not published. */
  readonly lacking: readonly string[];
}

/**
 * The limits of the publication, if it includes the table. Versions before 15 have neither filters nor column lists.
 */
export async function publicationLimits(
  session: Session,
  name: string,
  table: TableName,
): Promise<readonly PublicationLimit[]> {
  const rows = await session.rows(
    `select m.pubname, to_jsonb(m) ->> 'rowfilter', (
       select coalesce(jsonb_agg(a.attname order by a.attnum), '[]') from pg_catalog.pg_attribute a
       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
         and jsonb_typeof(to_jsonb(m) -> 'attnames') = 'array' and not to_jsonb(m) -> 'attnames' ? a.attname::text)
     from pg_catalog.pg_publication_tables m
       join pg_catalog.pg_namespace n on n.nspname = m.schemaname
       join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = m.tablename
     where m.schemaname = $1 and m.tablename = $2 and m.pubname = $3`,
    [table.schema, table.table, name],
  );
  return rows.map((row) => ({
    publication: row[0] ?? "",
    rowFilter: row[1] ?? null,
    lacking: JSON.parse(row[2] ?? "[]") as string[],
  }));
}

/** Describes a row filter as a fault. */
export function rowsLeftOut({ publication, rowFilter }: PublicationLimit, table: TableName): string {
  const what = `The publication ${publication} has only rows of ${displayTable(table)} for which ${rowFilter}`;
  return `${what}: the others are never published`;
}

/** Describes a column list as a fault. */
export function columnsLeftOut({ lacking, publication }: PublicationLimit, table: TableName): string {
  return `The publication ${publication} leaves out columns of ${displayTable(table)}: ${lacking.join(", ")}`;
}

/** Removes the row filter and the column list, and leaves the other tables unchanged. */
export function wholeTableSql(publication: string, table: TableName): string {
  const quoted = quoteIdentifier(publication);
  return `alter publication ${quoted} drop table ${quoteTable(table)}; alter publication ${quoted} add table ${quoteTable(table)};`;
}
