import { RelayError } from "../../core/errors.ts";
import type { ColumnInfo, ColumnNames } from "../../postgres/column-names.ts";
import { displayTable, parseTableName, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row, Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { readKeyFacts } from "../../postgres/unique-id.ts";
import { shapeOf, type TableFacts, type TableShape } from "./table-shape.ts";

/** The usual names of outbox tables. */
export const OUTBOX_TABLES = ["outbox", "outbox_events"] as const;

/** A table of events; `table: null` stands for whichever of the usual names its schema has. */
export interface TableReference {
  readonly schema: string;
  readonly table: string | null;
}

export interface DiscoveryRequest {
  /** `*` selects every schema that has an outbox table. */
  readonly schemas?: readonly string[] | "*";
  /** Further tables, as `schema.table`. */
  readonly tables?: readonly string[];
}

/**
 * The tables to read. A schema without an outbox table is returned as a reference without a table: its source reports
 * what is missing and starts by itself when the table appears, and the other tables do not wait for it.
 */
export async function discoverTables(
  database: Database,
  request: DiscoveryRequest,
): Promise<readonly TableReference[]> {
  const { schemas = [], tables = [] } = request;
  const explicit = tables.map(parseTableName);
  if (schemas.length === 0) return explicit;
  const settings = readSettings(database, "searching for outbox tables");
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'p') and c.relname = any($1::text[]) and not c.relispartition
         and n.nspname <> $2 and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
       order by 1, 2`,
      [OUTBOX_TABLES, database.relaySchema],
    ),
  );
  const found = rows.map((row) => ({ schema: row[0] ?? "", table: row[1] ?? "" }));
  if (schemas === "*") return unique([...found, ...explicit]);
  const chosen = schemas.flatMap((schema): readonly TableReference[] => {
    const inSchema = found.filter((table) => table.schema === schema);
    return inSchema.length > 0 ? inSchema : [{ schema, table: null }];
  });
  return unique([...chosen, ...explicit]);
}

function unique(tables: readonly TableReference[]): readonly TableReference[] {
  return [...new Map(tables.map((table) => [JSON.stringify([table.schema, table.table]), table])).values()];
}

/**
 * Reads the table's shape from the catalog. Throws TABLE_MISSING, GRANT_MISSING, COLUMN_MISSING, COLUMN_MISTYPED,
 * ID_NOT_UNIQUE.
 */
export async function readShape(
  database: Database,
  reference: TableReference,
  names: ColumnNames = {},
): Promise<TableShape> {
  return await inspectTable(database, reference, ["select", "update"], async (session, facts) =>
    shapeOf({ ...facts, keys: await readKeyFacts(session, facts) }, names),
  );
}

/** What the catalog says about a table that was found. */
export interface InspectedTable extends TableFacts {
  readonly oid: string;
  readonly isPartitioned: boolean;
}

/**
 * Reads what the catalog says about the table, and passes it on with the session. Throws TABLE_MISSING, GRANT_MISSING.
 */
export async function inspectTable<T>(
  database: Database,
  reference: TableReference,
  rights: readonly ("select" | "update")[],
  look: (session: Session, facts: InspectedTable) => Promise<T>,
): Promise<T> {
  const settings = readSettings(database, "reading the table", referenceName(reference));
  return await transaction(database.pool, settings, async (session) => {
    const { name, oid, isPartitioned } = await findTable(session, reference);
    await requireGrants(session, database, name, oid, rights);
    const columns = (await session.rows(COLUMNS_SQL, [oid])).map(columnInfoOf);
    const indexes = await session.rows("select pg_get_indexdef(indexrelid) from pg_index where indrelid = $1::oid", [
      oid,
    ]);
    const [encoding] = await session.rows("select current_setting('server_encoding')");
    const facts = { name, columns, indexes: indexes.map((row) => row[0] ?? "") };
    return await look(session, { ...facts, oid, isPartitioned, serverEncoding: encoding?.[0] ?? "" });
  });
}

/** A column as the write-ahead log describes it too. */
interface LoggedColumn extends ColumnInfo {
  readonly typeOid: number;
  readonly isGenerated: boolean;
}

/** The table and its columns, whatever rights the role has. Throws TABLE_MISSING. */
export async function readColumns(
  database: Database,
  reference: TableReference,
): Promise<{ readonly name: TableName; readonly columns: readonly LoggedColumn[] }> {
  const settings = readSettings(database, "reading the table", referenceName(reference));
  return await transaction(database.pool, settings, async (session) => {
    const { name, oid } = await findTable(session, reference);
    const rows = await session.rows(COLUMNS_SQL, [oid]);
    const columns = rows.map((row) => ({
      ...columnInfoOf(row),
      typeOid: Number(row[6]),
      isGenerated: row[7] === "t",
    }));
    return { name, columns };
  });
}

/** The table's name for messages. */
export function referenceName({ schema, table }: TableReference): string {
  return table === null ? `${schema}.(${OUTBOX_TABLES.join(" or ")})` : displayTable({ schema, table });
}

interface FoundTable {
  readonly name: TableName;
  readonly oid: string;
  readonly isPartitioned: boolean;
}

async function findTable(session: Session, reference: TableReference): Promise<FoundTable> {
  const { schema, table } = reference;
  const candidates = table === null ? OUTBOX_TABLES : [table];
  const rows = await session.rows(
    `select c.relname, c.oid, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1 and c.relname = any($2::text[]) and c.relkind in ('r', 'p', 'v', 'm', 'f')
     order by array_position($2::text[], c.relname::text)`,
    [schema, candidates],
  );
  const found = rows.find((row) => row[2] === "r" || row[2] === "p");
  if (found) {
    return { name: { schema, table: found[0] ?? "" }, oid: found[1] ?? "", isPartitioned: found[2] === "p" };
  }
  const kind = RELATION_KINDS[rows[0]?.[2] ?? ""];
  const what =
    kind === undefined ? "does not exist" : `is ${kind}: the relay reads only tables. Configure the table behind it`;
  throw new RelayError("TABLE_MISSING", `${kind === undefined ? "The table " : ""}${referenceName(reference)} ${what}`);
}

const RELATION_KINDS: Readonly<Record<string, string>> = {
  v: "a view",
  m: "a materialized view",
  f: "a foreign table",
};

/**
 * Checked in the catalog before any statement fails, because the server's own message names neither schema nor role.
 */
async function requireGrants(
  session: Session,
  database: Database,
  name: TableName,
  oid: string,
  rights: readonly ("select" | "update")[],
): Promise<void> {
  const [row] = await session.rows(
    `select has_schema_privilege($1, 'usage'), has_any_column_privilege($2::oid, 'select'),
       has_any_column_privilege($2::oid, 'update'), current_user`,
    [name.schema, oid],
  );
  const lacking = [
    row?.[0] === "t" ? null : `USAGE on schema ${name.schema}`,
    row?.[1] === "t" ? null : `SELECT on ${quoteTable(name)}`,
    row?.[2] === "t" || !rights.includes("update") ? null : `UPDATE on ${quoteTable(name)}`,
  ].filter((grant) => grant !== null);
  if (lacking.length === 0) return;
  const role = row?.[3] ?? database.role;
  throw new RelayError("GRANT_MISSING", `The role ${role} lacks ${lacking.join(", ")}`);
}

// From pg_attribute: information_schema hides columns without a grant, which would look like missing columns.
const COLUMNS_SQL = `
select a.attname, format_type(a.atttypid, a.atttypmod), format_type(a.atttypid, -1),
  format_type(case when t.typtype = 'd' then t.typbasetype else a.atttypid end, -1), t.typtype = 'e',
  a.attidentity <> '' or coalesce(pg_get_expr(d.adbin, d.adrelid) like 'nextval(%', false), a.atttypid,
  a.attgenerated <> ''
from pg_attribute a
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
order by a.attnum`;

function columnInfoOf(row: Row): ColumnInfo {
  return {
    name: row[0] ?? "",
    type: row[1] ?? "",
    castType: row[2] ?? "",
    baseType: row[3] ?? "",
    isEnum: row[4] === "t",
    isSequence: row[5] === "t",
  };
}

function readSettings(database: Database, doing: string, table?: string) {
  return {
    context: database.errorContext(doing, table),
    statementTimeoutMs: database.timeouts.statementMs,
    readOnly: true,
    // With this path, types outside pg_catalog are printed with their schema, so that a cast means the same everywhere.
    settings: { search_path: "pg_catalog" },
  };
}
