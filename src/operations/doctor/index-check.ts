import { createIndexSql } from "../../postgres/create-index.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { plainCondition } from "../../postgres/type-condition.ts";
import type { TableShape } from "../../sources/postgres/table-shape.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding, ShapedTable } from "./finding.ts";

/**
 * Disables every plan except an ordered index scan: the plan then shows whether there is such an index, however small
 * the table is.
 */
const ONLY_INDEXES = { enable_seqscan: "off", enable_sort: "off", enable_bitmapscan: "off", jit: "off" };

/**
 * Whether an index returns the unsettled rows in order. Without one, every run sorts all of them, or reads the whole
 * table.
 */
export async function checkIndex(subject: DoctorSubject, { table, shape }: ShapedTable): Promise<readonly Finding[]> {
  const { indexes, isPartitioned } = await partialIndexes(subject, shape, shape.main);
  if (indexes.length > 0) return [];
  const what = `${displayTable(table)} has no partial index that returns the waiting events in order`;
  const fix = indexFor(shape, isPartitioned, waitingCondition(shape));
  return [{ severity: "warning", check: "index", what, fix }];
}

/**
 * Where several destinations share a table, the reader of one skips all events that wait for the others, unless it has
 * an index of its own: one destination that is down for long would slow down the rest.
 */
export async function checkSharedIndex(
  subject: DoctorSubject,
  { table, shape }: ShapedTable,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { name, rulesFor } of subject.destinations) {
    const rules = rulesFor(table);
    const plain = rules?.some(({ mine }) => mine) ? plainCondition(shape, rules) : null;
    if (plain === null) continue;
    const { indexes, isPartitioned } = await partialIndexes(subject, shape, `${shape.main} and ${plain}`);
    const column = shape.typeColumn?.replace(/^t\./, "").replaceAll('"', "") ?? "";
    if (indexes.some(({ condition }) => condition.includes(column))) continue;
    const what = `Reads for ${name} in ${displayTable(table)} skip all events that wait for other destinations: slow while another destination is down for long`;
    const fix = indexFor(shape, isPartitioned, `${waitingCondition(shape)} and ${plain.replaceAll("t.", "")}`);
    findings.push({ severity: "warning", check: "index", what, fix });
  }
  return findings;
}

interface OrderedAccess {
  /** Partial indexes that return the rows in order: of the table, or of each of its partitions. */
  readonly indexes: readonly { readonly condition: string }[];
  readonly isPartitioned: boolean;
}

/** The partial indexes by which the server could read these rows in order. */
async function partialIndexes(
  { database }: DoctorSubject,
  shape: TableShape,
  condition: string,
): Promise<OrderedAccess> {
  const settings = { ...operationReadSettings(database, "reading the indexes", displayTable(shape.name)) };
  const rows = await transaction(database.pool, { ...settings, settings: ONLY_INDEXES }, async (session) => {
    const [plan] = await session.rows(
      `explain (format json) select from ${shape.quotedName} t where ${condition} order by ${shape.order.column}`,
    );
    const partial = await session.rows(
      `select c.relname, pg_catalog.pg_get_expr(i.indpred, i.indrelid)
       from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
       where (i.indrelid = $1::regclass or i.indrelid in (select relid from pg_catalog.pg_partition_tree($1::regclass)))
         and i.indisvalid and i.indpred is not null`,
      [shape.quotedName],
    );
    const [kind] = await session.rows(`select relkind from pg_catalog.pg_class where oid = $1::regclass`, [
      shape.quotedName,
    ]);
    return { plan, partial, isPartitioned: kind?.[0] === "p" };
  });
  const used = indexesInOrder(rows.plan);
  const indexes = rows.partial.filter((row) => used.has(row[0] ?? "")).map((row) => ({ condition: row[1] ?? "" }));
  return { indexes, isPartitioned: rows.isPartitioned };
}

function indexFor({ name, order }: TableShape, isPartitioned: boolean, where: string): string {
  return createIndexSql({ table: name, columns: order.column.replace(/^t\./, ""), where, isPartitioned });
}

const SORTS: readonly unknown[] = ["Sort", "Incremental Sort"];

/** The indexes of a plan without a sort. Partitions in order may be merged by a sort key, which sorts nothing. */
function indexesInOrder(plan: Row | undefined): ReadonlySet<string> {
  const names = new Set<string>();
  let isSorted = false;
  JSON.parse(plan?.[0] ?? "[]", (key, value: unknown) => {
    if (key === "Index Name") names.add(String(value));
    if (key === "Node Type" && SORTS.includes(value)) isSorted = true;
    return value;
  });
  return isSorted ? new Set() : names;
}

/** The condition in its usual form, which the relay's queries use too: the first flag, or the status. */
function waitingCondition({ givenUp, main, markDelivered }: TableShape): string {
  if (givenUp !== null) return main.replaceAll("t.", "");
  const [, flag, value] = /^("(?:[^"]|"")+") = (true|clock_timestamp\(\))/.exec(markDelivered) ?? [];
  return `${flag} ${value === "true" ? "= false" : "is null"}`;
}
