import { displayTable } from "../../postgres/identifiers.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import type { TableShape } from "../../sources/postgres/table-shape.ts";
import { operationReadSettings } from "../event-source.ts";
import type { DoctorSubject, Finding, ShapedTable } from "./finding.ts";

/** Everything but an index in order is switched off: what is left tells whether there is one, however small the table. */
const ONLY_INDEXES = { enable_seqscan: "off", enable_sort: "off", enable_bitmapscan: "off", jit: "off" };

/** Whether an index gives the waiting rows in order. Without one, every run sorts all of them, or reads the whole table. */
export async function checkIndex(
  { database }: DoctorSubject,
  { table, shape }: ShapedTable,
): Promise<readonly Finding[]> {
  const settings = { ...operationReadSettings(database, "looking at the indexes", displayTable(table)) };
  const rows = await transaction(database.pool, { ...settings, settings: ONLY_INDEXES }, async (session) => {
    const [plan] = await session.rows(
      `explain (format json) select from ${shape.quotedName} t where ${shape.main} order by ${shape.order.column}`,
    );
    const partial = await session.rows(
      `select c.relname from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
       where i.indrelid = $1::regclass and i.indisvalid and i.indpred is not null`,
      [shape.quotedName],
    );
    return { plan, partial };
  });
  const used = indexesInOrder(rows.plan);
  if (rows.partial.some((row) => used.has(row[0] ?? ""))) return [];
  const what = `${displayTable(table)} has no partial index that gives the waiting events in order`;
  const order = shape.order.column.replace(/^t\./, "");
  const fix = `create index concurrently on ${shape.quotedName} (${order}) where ${waitingCondition(shape)};`;
  return [{ severity: "warning", check: "index", what, fix }];
}

/** The indexes of a plan that needs no sort. */
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

/** As people write it, and as the relay then asks: by the first flag, or by the status. */
function waitingCondition({ givenUp, main, markDelivered }: TableShape): string {
  if (givenUp !== null) return main.replaceAll("t.", "");
  const [, flag, value] = /^("(?:[^"]|"")+") = (true|clock_timestamp\(\))/.exec(markDelivered) ?? [];
  return `${flag} ${value === "true" ? "= false" : "is null"}`;
}
