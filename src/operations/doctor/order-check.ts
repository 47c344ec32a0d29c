import { displayTable } from "../../postgres/identifiers.ts";
import { transaction } from "../../postgres/transaction.ts";
import { operationReadSettings } from "../event-source.ts";
import type { DoctorSubject, Finding, ShapedTable } from "./finding.ts";

const ROWS_LOOKED_AT = 10_000;

/**
 * Whether the rows tell the order in which they were written. A sequence does. A time does as far as no two events share
 * it, and `now()` is shared by all events of a transaction and is as old as its beginning.
 */
export async function checkOrder(
  { database }: DoctorSubject,
  { table, shape }: ShapedTable,
): Promise<readonly Finding[]> {
  if (shape.order.unique) return [];
  const column = shape.order.column.replace(/^t\./, "");
  const settings = operationReadSettings(database, "looking at the order", displayTable(table));
  const { written, ties } = await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows(
      `select pg_get_expr(d.adbin, d.adrelid) from pg_catalog.pg_attribute a
       left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
       where a.attrelid = $1::regclass and quote_ident(a.attname) = $2 or a.attrelid = $1::regclass and a.attname = $3`,
      [shape.quotedName, column, column.replace(/^"|"$/g, "").replaceAll('""', '"')],
    );
    const [count] = await session.rows(
      `select count(*) - count(distinct o) from (
         select ${shape.order.column} as o from ${shape.quotedName} t limit ${ROWS_LOOKED_AT}) s`,
    );
    return { written: row?.[0] ?? null, ties: Number(count?.[0]) };
  });
  const isExact = written !== null && /clock_timestamp\(\)/.test(written);
  if (isExact && ties === 0) return [];
  const name = displayTable(table);
  const why = isExact
    ? "which is set at the insert"
    : written === null
      ? "which the application writes"
      : `whose default is ${written}: the beginning of the transaction, for all of its events`;
  const shared = ties === 0 ? "" : `; ${ties} of ${ROWS_LOOKED_AT} rows looked at share theirs with another`;
  return [
    {
      severity: "warning",
      check: "order",
      what: `${name} has no sequence, so the order of a key's events is taken from ${column}, ${why}${shared}`,
      fix: `alter table ${shape.quotedName} add column position bigint generated always as identity;${
        isExact
          ? ""
          : `\n-- or, cheaper: alter table ${shape.quotedName} alter column ${column} set default clock_timestamp();`
      }`,
    },
  ];
}
