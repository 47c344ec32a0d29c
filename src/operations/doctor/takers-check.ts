import { displayTable, type TableName } from "../../postgres/identifiers.ts";
import { takenTypes } from "../../postgres/taken-types.ts";
import { statement } from "../../postgres/transaction.ts";
import { eventTable } from "../../sources/openoutbox/openoutbox-table.ts";
import { unroutedSql as unroutedInOpenOutbox } from "../../sources/openoutbox/unrouted.sql.ts";
import { unroutedSql } from "../../sources/postgres/unrouted.sql.ts";
import { operationReadSettings } from "../event-source.ts";
import type { DoctorSubject, Finding, ShapedTable } from "./finding.ts";

const TYPES_NAMED = 20;

/** Types that wait and that no running relay takes. Where none runs at all, the check of the owners tells it. */
export async function checkTakers(
  { database, tables }: DoctorSubject,
  shaped: readonly ShapedTable[],
): Promise<readonly Finding[]> {
  const looks = [
    ...shaped.map(({ table, shape }) => ({
      table,
      sql: (rules: Rules) => unroutedSql(shape, rules),
    })),
    ...tables
      .filter(({ isOpenOutbox, isThere }) => isOpenOutbox && isThere)
      .map((table) => ({ table, sql: (rules: Rules) => unroutedInOpenOutbox(eventTable(table), rules) })),
  ];
  const findings: Finding[] = [];
  for (const { table, sql } of looks) {
    const { instances, rules } = await takenTypes(database, table);
    if (instances === 0 || rules === null) continue;
    const settings = operationReadSettings(database, "looking for events that nobody takes", displayTable(table));
    const rows = await statement(database.pool, settings, sql(rules));
    if (rows.length > 0)
      findings.push(
        untaken(
          table,
          rows.map((row) => [row[0] ?? "", Number(row[1])] as const),
        ),
      );
  }
  return findings;
}

type Rules = Parameters<typeof unroutedSql>[1];

function untaken(table: TableName, types: readonly (readonly [type: string, count: number])[]): Finding {
  const list = types
    .slice(0, TYPES_NAMED)
    .map(([type, count]) => `${type} (${count === 1_000 ? "1000 or more" : count})`);
  const more = types.length > TYPES_NAMED ? ` and ${types.length - TYPES_NAMED} more types` : "";
  return {
    severity: "error",
    check: "takers",
    what: `Events wait in ${displayTable(table)} that no running relay takes: ${list.join(", ")}${more}`,
    fix: `Add a route or an intent relay for ${types.length === 1 ? "the type" : "each type"}, or correct OUTBOX_ONLY; a relay for one of them:\noutbox-relay run --only ${shellWord(types[0]![0])}`,
  };
}

function shellWord(text: string): string {
  return /^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
