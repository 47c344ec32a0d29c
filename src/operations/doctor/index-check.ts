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
  if ((await partialIndexes(subject, shape, shape.main)).length > 0) return [];
  const what = `${displayTable(table)} has no partial index that returns the waiting events in order`;
  return [{ severity: "warning", check: "index", what, fix: indexFor(shape, waitingCondition(shape)) }];
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
    const indexes = await partialIndexes(subject, shape, `${shape.main} and ${plain}`);
    const column = shape.typeColumn?.replace(/^t\./, "").replaceAll('"', "") ?? "";
    if (indexes.some(({ condition }) => condition.includes(column))) continue;
    const what = `Reads for ${name} in ${displayTable(table)} skip all events that wait for other destinations: slow while another destination is down for long`;
    const fix = indexFor(shape, `${waitingCondition(shape)} and ${plain.replaceAll("t.", "")}`);
    findings.push({ severity: "warning", check: "index", what, fix });
  }
  return findings;
}

/** The partial indexes by which the server could read these rows in order. */
async function partialIndexes(
  { database }: DoctorSubject,
  shape: TableShape,
  condition: string,
): Promise<readonly { readonly condition: string }[]> {
  const settings = { ...operationReadSettings(database, "reading the indexes", displayTable(shape.name)) };
  const rows = await transaction(database.pool, { ...settings, settings: ONLY_INDEXES }, async (session) => {
    const [plan] = await session.rows(
      `explain (format json) select from ${shape.quotedName} t where ${condition} order by ${shape.order.column}`,
    );
    const partial = await session.rows(
      `select c.relname, pg_catalog.pg_get_expr(i.indpred, i.indrelid)
       from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
       where i.indrelid = $1::regclass and i.indisvalid and i.indpred is not null`,
      [shape.quotedName],
    );
    return { plan, partial };
  });
  const used = indexesInOrder(rows.plan);
  return rows.partial.filter((row) => used.has(row[0] ?? "")).map((row) => ({ condition: row[1] ?? "" }));
}

function indexFor(shape: TableShape, condition: string): string {
  const order = shape.order.column.replace(/^t\./, "");
  return `create index concurrently on ${shape.quotedName} (${order}) where ${condition};`;
}

/** The indexes of a plan without a sort. */
function indexesInOrder(plan: Row | undefined): ReadonlySet<string> {
  const names = new Set<string>();
  let isSorted = false;
  JSON.parse(plan?.[0] ?? "[]", (key, value: unknown) => {
    if (key === "Index Name") names.add(String(value));
    if (key === "Sort Key") isSorted = true;
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
