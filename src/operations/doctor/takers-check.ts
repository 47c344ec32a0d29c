import { displayTable, type TableName } from "../../postgres/identifiers.ts";
import { takenTypes } from "../../postgres/taken-types.ts";
import { statement } from "../../postgres/transaction.ts";
import { openOutboxShape } from "../../sources/postgres/openoutbox/openoutbox-table.ts";
import { unroutedSql } from "../../sources/postgres/unrouted.sql.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, Finding, ShapedTable } from "./finding.ts";

const TYPES_NAMED = 20;

/** Waiting types that no running relay handles. Without any running relay, the check of the owners reports it. */
export async function checkTakers(
  { database, tables }: DoctorSubject,
  shaped: readonly ShapedTable[],
): Promise<readonly Finding[]> {
  const looks = [
    ...shaped,
    ...tables
      .filter(({ isOpenOutbox, isThere }) => isOpenOutbox && isThere)
      .map((table) => ({ table, shape: openOutboxShape(table) })),
  ];
  const findings: Finding[] = [];
  for (const { table, shape } of looks) {
    const { instances, rules } = await takenTypes(database, table);
    if (instances === 0 || rules === null) continue;
    const settings = operationReadSettings(database, "looking for events without a handler", displayTable(table));
    const rows = await statement(database.pool, settings, unroutedSql(shape, rules));
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

function untaken(table: TableName, types: readonly (readonly [type: string, count: number])[]): Finding {
  const list = types
    .slice(0, TYPES_NAMED)
    .map(([type, count]) => `${type} (${count === 1_000 ? "1000 or more" : count})`);
  const more = types.length > TYPES_NAMED ? ` and ${types.length - TYPES_NAMED} more types` : "";
  return {
    severity: "error",
    check: "takers",
    what: `Events wait in ${displayTable(table)} that no running relay handles: ${list.join(", ")}${more}`,
    fix: `Add a route or an intent relay for ${types.length === 1 ? "the type" : "each type"}, or fix OUTBOX_ONLY; a relay for one of them:\noutbox-relay run --only ${shellWord(types[0]![0])}`,
  };
}

function shellWord(text: string): string {
  return /^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
