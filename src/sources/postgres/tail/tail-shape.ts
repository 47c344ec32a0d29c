import { RelayError } from "../../../core/errors.ts";
import { ColumnFinder } from "../../../postgres/column-finder.ts";
import { type ColumnInfo, type ColumnNames, isInteger } from "../../../postgres/column-names.ts";
import { createIndexSql } from "../../../postgres/create-index.ts";
import { displayTable, quoteIdentifier } from "../../../postgres/identifiers.ts";
import type { Database } from "../../../postgres/pool.ts";
import type { Session } from "../../../postgres/session.ts";
import { type InspectedTable, inspectTable, type TableReference } from "../table-discovery.ts";
import { eventShapeOf, type TableShape } from "../table-shape.ts";

/** An append-only table: its events, and the columns that it is read by, as fragments over its alias `t`. */
export interface TailShape {
  readonly events: TableShape;
  /** An integer that rises with every insert and is never assigned twice. */
  readonly position: string;
  readonly positionName: string;
  /** The transaction that wrote the row; null without such a column. */
  readonly xid: string | null;
  readonly xidName: string | null;
  readonly isPartitioned: boolean;
  /** True when the position has an index, so that a large difference can be walked along it. */
  readonly hasPositionIndex: boolean;
}

interface TailColumns {
  readonly names: ColumnNames;
  /** The column with the writing transaction; undefined: the column of type xid8; null: there is none. */
  readonly xid?: string | null | undefined;
}

/** Rows of a log have no state. */
const NO_STATE = {
  unsettled: "true",
  available: "true",
  scheduledAt: null,
  main: "true",
  conflicts: null,
  delivered: "false",
  deliveredAt: null,
  markDelivered: "",
  markFailed: null,
  givenUp: null,
  setBack: null,
  unmark: "",
  preset: "flag",
} as const;

/** Reads the table's shape from the catalog. Throws TABLE_MISSING, GRANT_MISSING, COLUMN_MISSING, COLUMN_MISTYPED, INDEX_MISSING. */
export async function readTailShape(
  database: Database,
  reference: TableReference,
  columns: TailColumns,
): Promise<TailShape> {
  return await inspectTable(database, reference, ["select"], async (session, facts) => {
    const defaults = await session.rows(DEFAULTS_SQL, [facts.oid]);
    const shape = tailShapeOf({ ...facts, xidDefaults: defaults.map((row) => row[0] ?? "") }, columns);
    if (shape.xidName !== null) await requireXidIndex(session, facts, shape.xidName, shape.positionName);
    return { ...shape, hasPositionIndex: await hasIndexOn(session, facts.oid, shape.positionName) };
  });
}

interface TailFacts extends InspectedTable {
  /** Columns whose default is the id of the writing transaction. */
  readonly xidDefaults: readonly string[];
}

/** Pure: the same facts give the same shape. */
function tailShapeOf(facts: TailFacts, { names, xid }: TailColumns): TailShape {
  const finder = new ColumnFinder(facts.name, facts.columns);
  const position =
    names.order === undefined
      ? finder.first((column) => column.isSequence && isInteger(column))
      : finder.require({
          role: "the position",
          named: names.order,
          candidates: [],
          fits: isInteger,
          type: "an integer",
        });
  if (position === null) throw finder.missing("the position", ["an identity or serial column"]);
  if (!position.isSequence && !isUnique(facts.indexes ?? [], position.name)) {
    const what = `Column ${position.name} of ${displayTable(facts.name)} (the position) has neither a sequence nor a`;
    throw new RelayError("COLUMN_MISTYPED", `${what} unique index, so rows could be skipped.`);
  }
  const { event } = eventShapeOf(finder, facts, logNames(finder, names, position));
  const column = `t.${quoteIdentifier(position.name)}`;
  const order = { column, unique: true, isCreatedAt: false };
  const writer = xid === null ? null : findXid(finder, facts, xid);
  return {
    events: { ...event, ...NO_STATE, order },
    position: column,
    positionName: position.name,
    xid: writer === null ? null : `t.${quoteIdentifier(writer.name)}`,
    xidName: writer?.name ?? null,
    isPartitioned: facts.isPartitioned,
    hasPositionIndex: true,
  };
}

/** In a log, `id` is often the position and `event_id` the event's id. */
function logNames(finder: ColumnFinder, names: ColumnNames, position: ColumnInfo): ColumnNames {
  const isPosition = position.name === "id" && names.id === undefined && finder.has("event_id");
  const hasOwnKey = names.key === undefined && finder.has("event_key");
  return {
    ...names,
    ...(isPosition ? { id: "event_id" } : {}),
    ...(hasOwnKey ? { key: "event_key" } : {}),
    order: position.name,
    attempts: null,
  };
}

function findXid(finder: ColumnFinder, facts: TailFacts, named: string | undefined): ColumnInfo | null {
  const isXid = ({ baseType }: ColumnInfo) => baseType === "xid8";
  const column =
    named === undefined
      ? (finder.first((it) => isXid(it) && facts.xidDefaults.includes(it.name)) ?? finder.first(isXid))
      : finder.require({ role: "the transaction", named, candidates: [], fits: isXid, type: "xid8" });
  if (column === null || facts.xidDefaults.includes(column.name)) return column;
  const what = `Column ${column.name} of ${displayTable(facts.name)} has no default, so rows could be`;
  const cure = `alter table .. alter column ${quoteIdentifier(column.name)} set default pg_current_xact_id()`;
  throw new RelayError("COLUMN_MISTYPED", `${what} skipped. Run: ${cure}.`);
}

function isUnique(indexes: readonly string[], column: string): boolean {
  const forms = [`(${column})`, `(${quoteIdentifier(column)})`];
  return indexes.some((index) => index.startsWith("CREATE UNIQUE") && forms.some((form) => index.endsWith(form)));
}

const DEFAULTS_SQL = `
select a.attname from pg_attribute a
join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = $1::oid and not a.attisdropped and pg_get_expr(d.adbin, d.adrelid) ~ 'pg_current_xact_id\\(\\)'`;

async function requireXidIndex(
  session: Session,
  { name, oid, isPartitioned }: InspectedTable,
  xid: string,
  position: string,
): Promise<void> {
  if (await hasIndexOn(session, oid, xid)) return;
  const columns = `${quoteIdentifier(xid)}, ${quoteIdentifier(position)}`;
  const what = `${displayTable(name)} has no index to find new rows by`;
  throw new RelayError("INDEX_MISSING", `${what}. Run: ${createIndexSql({ table: name, columns, isPartitioned })}`);
}

/** An index that begins with the column, on the table or on each of its partitions. */
async function hasIndexOn(session: Session, oid: string, column: string): Promise<boolean> {
  const [row] = await session.rows(
    `select bool_and(exists (
       select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
       where i.indrelid = leaf.relid and i.indisvalid and i.indpred is null and a.attname = $2))
     from (select $1::oid::regclass as relid where not exists (select from pg_partition_tree($1::oid))
       union all select relid from pg_partition_tree($1::oid) where isleaf) leaf`,
    [oid, column],
  );
  return row?.[0] === "t";
}
