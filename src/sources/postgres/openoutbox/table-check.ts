import { RelayError } from "../../../core/errors.ts";
import type { ColumnInfo } from "../../../postgres/column-names.ts";
import { displayTable, quoteTable, type TableName } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Session } from "../../../postgres/session.ts";
import { readKeyFacts, requireUniqueId } from "../../../postgres/unique-id.ts";
import { inspectTable } from "../table-discovery.ts";
import type { TableShape } from "../table-shape.ts";
import { openOutboxShape } from "./openoutbox-table.ts";

const TEXT = ["text", "character varying"];
const TIME = ["timestamp with time zone"];

/** The columns of the table's contract with their accepted types. */
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

/** Columns that the relay writes. The application writes the others. */
const WRITTEN = [
  "status",
  "attempts",
  "last_error",
  "available_at",
  "locked_by",
  "locked_at",
  "delivered_at",
  "updated_at",
];

const EVENT_ID = { name: "event_id", baseType: "uuid", isSequence: false };

/**
 * Checks the table against its contract and returns its shape. Throws TABLE_MISSING, COLUMN_MISSING, COLUMN_MISTYPED,
 * GRANT_MISSING or ID_NOT_UNIQUE, and names every fault of that kind.
 */
export async function checkTable(database: Database, name: TableName): Promise<TableShape> {
  return await inspectTable(database, name, ["select"], async (session, { columns, oid, isPartitioned }) => {
    checkColumns(name, columns);
    await checkGrants(session, name, oid);
    requireUniqueId(name, EVENT_ID, await readKeyFacts(session, { oid, isPartitioned }));
    const [index] = await session.rows(ORDER_INDEX_SQL, [oid]);
    return openOutboxShape(name, index?.[0] === "t");
  });
}

/** A valid index on (available_at, created_at) over all rows or over the pending ones. */
const ORDER_INDEX_SQL = `
select exists (select from pg_catalog.pg_index i where i.indrelid = $1::oid and i.indisvalid
  and pg_get_indexdef(i.indexrelid, 1, true) = 'available_at' and pg_get_indexdef(i.indexrelid, 2, true) = 'created_at'
  and i.indoption[0] = 0 and i.indoption[1] = 0
  and (i.indpred is null
    or pg_get_expr(i.indpred, i.indrelid) ~ '^\\(\\(?status\\)?(::text)? = ''PENDING''::(text|character varying)\\)$'))`;

function checkColumns(name: TableName, columns: readonly ColumnInfo[]): void {
  const types = new Map(columns.map((column) => [column.name, column.baseType]));
  const missing = Object.keys(COLUMNS).filter((column) => !types.has(column));
  if (missing.length > 0) {
    const what = `The table ${displayTable(name)} is not an Open Outbox table: missing columns ${missing.join(", ")}`;
    throw new RelayError("COLUMN_MISSING", what);
  }
  const mistyped = Object.entries(COLUMNS).filter(([column, allowed]) => !allowed.includes(types.get(column) ?? ""));
  if (mistyped.length === 0) return;
  const list = mistyped.map(([column, [wanted]]) => `${column} is ${types.get(column)}, not ${wanted}`);
  throw new RelayError("COLUMN_MISTYPED", `In the table ${displayTable(name)} ${list.join("; ")}`);
}

/** Checks each column, because the owner may grant only these. */
async function checkGrants(session: Session, name: TableName, oid: string): Promise<void> {
  const [row] = await session.rows(
    `select bool_and(has_column_privilege($1::oid, c, 'select')),
       bool_and(has_column_privilege($1::oid, c, 'update')) filter (where c = any($3::text[])), current_user
     from unnest($2::text[]) c`,
    [oid, Object.keys(COLUMNS), WRITTEN],
  );
  const lacking = [
    ...(row?.[0] === "t" ? [] : [`SELECT on ${quoteTable(name)}`]),
    ...(row?.[1] === "t" ? [] : [`UPDATE on ${quoteTable(name)}`]),
  ];
  if (lacking.length === 0) return;
  throw new RelayError("GRANT_MISSING", `The role ${row?.[2]} lacks ${lacking.join(", ")}`);
}
