import { RelayError } from "../../core/errors.ts";
import { displayTable, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row, Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { readKeyFacts, requireUniqueId } from "../../postgres/unique-id.ts";

const TEXT = ["text", "character varying"];
const TIME = ["timestamp with time zone"];

/** The columns of the table's contract with the types that serve. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  event_id: ["uuid"],
  event_type: TEXT,
  partition_key: TEXT,
  payload: ["bytea"],
  headers: ["jsonb"],
  status: TEXT,
  attempts: ["integer", "bigint"],
  last_error: TEXT,
  available_at: TIME,
  locked_by: TEXT,
  locked_at: TIME,
  delivered_at: TIME,
  created_at: TIME,
  updated_at: TIME,
};

/** Columns that the relay writes. The others are the application's. */
const WRITTEN = new Set([
  "status",
  "attempts",
  "last_error",
  "available_at",
  "locked_by",
  "locked_at",
  "delivered_at",
  "updated_at",
]);

const EVENT_ID = { name: "event_id", baseType: "uuid", isSequence: false };

interface TableFacts {
  /** Whether an index gives the waiting rows in the order of a claim. */
  readonly hasOrderIndex: boolean;
}

/** Throws TABLE_MISSING, COLUMN_MISSING, COLUMN_MISTYPED, GRANT_MISSING or ID_NOT_UNIQUE, naming all that is wrong of its kind. */
export async function checkTable(database: Database, name: TableName): Promise<TableFacts> {
  const settings = {
    context: database.errorContext("looking at the table", displayTable(name)),
    statementTimeoutMs: database.timeouts.statementMs,
    readOnly: true,
  };
  return await transaction(database.pool, settings, async (session) => {
    const oid = await findTable(session, name);
    const columns = await session.rows(COLUMNS_SQL, [oid]);
    checkColumns(name, columns);
    await checkGrants(session, name, columns);
    requireUniqueId(name, EVENT_ID, await readKeyFacts(session, oid));
    const [index] = await session.rows(ORDER_INDEX_SQL, [oid]);
    return { hasOrderIndex: index?.[0] === "t" };
  });
}

async function findTable(session: Session, name: TableName): Promise<string> {
  const [row] = await session.rows(
    `select c.oid, c.relkind in ('r', 'p') from pg_catalog.pg_class c
     join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2`,
    [name.schema, name.table],
  );
  if (row?.[1] === "t") return row[0] ?? "";
  const why = row === undefined ? "does not exist" : "is not an ordinary table";
  throw new RelayError("TABLE_MISSING", `The table ${displayTable(name)} ${why}`);
}

// From pg_attribute: information_schema hides columns without a grant, which would look like a missing column.
const COLUMNS_SQL = `
select a.attname, format_type(case when t.typtype = 'd' then t.typbasetype else a.atttypid end, null),
  has_column_privilege(a.attrelid, a.attnum, 'select'), has_column_privilege(a.attrelid, a.attnum, 'update')
from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped`;

/** A valid index on (available_at, created_at) over all rows or over the waiting ones. */
const ORDER_INDEX_SQL = `
select exists (select from pg_catalog.pg_index i where i.indrelid = $1::oid and i.indisvalid
  and pg_get_indexdef(i.indexrelid, 1, true) = 'available_at' and pg_get_indexdef(i.indexrelid, 2, true) = 'created_at'
  and i.indoption[0] = 0 and i.indoption[1] = 0
  and (i.indpred is null
    or pg_get_expr(i.indpred, i.indrelid) ~ '^\\(\\(?status\\)?(::text)? = ''PENDING''::(text|character varying)\\)$'))`;

function checkColumns(name: TableName, columns: readonly Row[]): void {
  const types = new Map(columns.map((row) => [row[0] ?? "", row[1] ?? ""]));
  const missing = Object.keys(COLUMNS).filter((column) => !types.has(column));
  if (missing.length > 0) {
    const what = `The table ${displayTable(name)} is no Open Outbox table: it lacks ${missing.join(", ")}`;
    throw new RelayError("COLUMN_MISSING", what);
  }
  const mistyped = Object.entries(COLUMNS).filter(([column, allowed]) => !allowed.includes(types.get(column) ?? ""));
  if (mistyped.length === 0) return;
  const list = mistyped.map(([column, [wanted]]) => `${column} is ${types.get(column)}, not ${wanted}`);
  throw new RelayError("COLUMN_MISTYPED", `In the table ${displayTable(name)} ${list.join("; ")}`);
}

/** Asked of the catalogue before any statement fails, since the server's own message names neither schema nor role. */
async function checkGrants(session: Session, name: TableName, columns: readonly Row[]): Promise<void> {
  const [row] = await session.rows("select has_schema_privilege($1, 'usage'), current_user", [name.schema]);
  const known = columns.filter(([column]) => column != null && column in COLUMNS);
  const lacking: string[] = [];
  if (row?.[0] !== "t") lacking.push(`USAGE on schema ${name.schema}`);
  if (known.some((column) => column[2] !== "t")) lacking.push(`SELECT on ${quoteTable(name)}`);
  if (known.some((column) => WRITTEN.has(column[0] ?? "") && column[3] !== "t")) {
    lacking.push(`UPDATE on ${quoteTable(name)}`);
  }
  if (lacking.length === 0) return;
  throw new RelayError("GRANT_MISSING", `The role ${row?.[1]} lacks ${lacking.join(", ")}`);
}
