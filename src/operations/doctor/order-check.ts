import { displayTable, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding, ShapedTable } from "./finding.ts";

const ROWS_LOOKED_AT = 10_000;

/** The relay guarantees order per key: without keys there is no order. */
export function checkKey(table: TableName, hasKey: boolean, keyName = "aggregate_id"): readonly Finding[] {
  if (hasKey) return [];
  const what = `${displayTable(table)} has no key column, so its events are delivered in no order`;
  const fix = `alter table ${quoteTable(table)} add column ${keyName} text; -- and store there the id of each event's aggregate; OUTBOX_COLUMNS=key=column selects another column`;
  return [{ severity: "warning", check: "order", what, fix }];
}

/** The relay keeps the order of such a table with a single lane. */
export function checkSerial(table: TableName): readonly Finding[] {
  const what = `${displayTable(table)} has no key column, so one lane delivers it in its order, and others overtake a failed event`;
  const fix = `alter table ${quoteTable(table)} add column aggregate_id text; -- orders the events of each aggregate, and delivers aggregates in parallel; OUTBOX_COLUMNS=key=none does without order`;
  return [{ severity: "note", check: "order", what, fix }];
}

/**
 * Whether the rows show the order in which they were written. A sequence does. A time does only while no two events
 * share one, and all events of a transaction share `now()`, the time of its start.
 */
export async function checkOrder(
  { database }: DoctorSubject,
  { table, shape }: ShapedTable,
): Promise<readonly Finding[]> {
  if (shape.order.unique) return [];
  const column = shape.order.column.replace(/^t\./, "");
  const settings = operationReadSettings(database, "reading the order", displayTable(table));
  const { written, ties, rows } = await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows(
      `select pg_get_expr(d.adbin, d.adrelid) from pg_catalog.pg_attribute a
       left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
       where a.attrelid = $1::regclass and quote_ident(a.attname) = $2 or a.attrelid = $1::regclass and a.attname = $3`,
      [shape.quotedName, column, column.replace(/^"|"$/g, "").replaceAll('""', '"')],
    );
    const [count] = await session.rows(
      `select count(*) - count(distinct o), count(*) from (
         select ${shape.order.column} as o from ${shape.quotedName} t limit ${ROWS_LOOKED_AT}) s`,
    );
    return { written: row?.[0] ?? null, ties: Number(count?.[0]), rows: Number(count?.[1]) };
  });
  const isExact = written !== null && /clock_timestamp\(\)/.test(written);
  if (isExact && ties === 0) return [];
  const name = displayTable(table);
  const why = isExact
    ? "which is set at the insert"
    : written === null
      ? "which the application writes"
      : `whose default is ${written}: the start of the transaction, the same for all its events`;
  const shared = ties === 0 ? "" : `; ${ties} of ${rows} checked rows share theirs with another`;
  return [
    {
      severity: "warning",
      check: "order",
      what: `${name} has no sequence, so the order of a key's events comes from ${column}, ${why}${shared}`,
      fix: `alter table ${shape.quotedName} add column position bigint generated always as identity;${
        isExact
          ? ""
          : `\n-- or, cheaper: alter table ${shape.quotedName} alter column ${column} set default clock_timestamp();`
      }`,
    },
  ];
}
