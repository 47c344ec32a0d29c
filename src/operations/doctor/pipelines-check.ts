import { displayTable, type TableName } from "../../postgres/identifiers.ts";
import { conflictingReaders, readerOf, readersSql, sharedTableText } from "../../postgres/shared-table.ts";
import { tableTakers } from "../../postgres/table-takers.ts";
import { takenTypes } from "../../postgres/taken-types.ts";
import { statement, transaction } from "../../postgres/transaction.ts";
import { openOutboxShape } from "../../sources/postgres/openoutbox/openoutbox-table.ts";
import { unroutedSql } from "../../sources/postgres/postgres-store.sql.ts";
import { newestUnroutedSql } from "../../sources/postgres/tail/table-log.sql.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { orphanRemarks } from "../pipelines/orphans.ts";
import type { DoctorSubject, Finding, ShapedTable } from "./finding.ts";
import type { ShapedLog } from "./log-check.ts";

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

/**
 * Types of the newest rows of a log that none of its readers takes. The readers pass them, so a route that is added later
 * does not deliver them. With named subscribers that may be meant.
 */
export async function checkLogTakers(
  { database }: DoctorSubject,
  logs: readonly ShapedLog[],
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const { table, tail } of logs) {
    const { takers, unknown } = await tableTakers(database, table);
    const rules = takers.flatMap(({ takes }) => (takes === null ? [] : [takes]));
    if (tail === null || rules.length === 0 || rules.length < takers.length || unknown.length > 0) continue;
    const name = displayTable(table);
    const settings = operationReadSettings(database, "looking for events without a route", name);
    const rows = await statement(database.pool, settings, newestUnroutedSql(tail, rules));
    if (rows.length === 0) continue;
    const types = typesText(rows.map((row) => [row[0] ?? "", Number(row[1])] as const));
    findings.push({
      severity: takers.some(({ pipeline }) => pipeline.startsWith(`${name}@`)) ? "note" : "warning",
      check: "takers",
      what: `No route matches these events of ${name}, so its readers pass them without a delivery: ${types}`,
      fix: "Add a route for each type. For those that were passed, add a subscriber that starts before them.",
    });
  }
  return findings;
}

type CountedTypes = readonly (readonly [type: string, count: number])[];

function typesText(types: CountedTypes): string {
  const list = types
    .slice(0, TYPES_NAMED)
    .map(([type, count]) => `${type} (${count === 1_000 ? "1000 or more" : count})`);
  return `${list.join(", ")}${types.length > TYPES_NAMED ? ` and ${types.length - TYPES_NAMED} more types` : ""}`;
}

function untaken(table: TableName, types: CountedTypes): Finding {
  return {
    severity: "error",
    check: "takers",
    what: `Events wait in ${displayTable(table)} that no running relay handles: ${typesText(types)}`,
    fix: `Add a route or an intent relay for ${types.length === 1 ? "the type" : "each type"}, or fix OUTBOX_ONLY; a relay for one of them:\noutbox-relay run --only ${shellWord(types[0]![0])}`,
  };
}

function shellWord(text: string): string {
  return /^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Pipelines that are no longer configured. Harmless, except that those of logs block retention. */
export async function checkOrphans({ columns, configured, database }: DoctorSubject): Promise<readonly Finding[]> {
  if (configured === undefined) return [];
  const remarks = await orphanRemarks({ database, columns }, configured);
  return remarks.map(({ fix, what }) => ({ severity: "note", check: "pipelines", what, fix }));
}

/** Deployments that read the same events of one table: each event would reach only one of them. */
export async function checkSharers({ database, tables }: DoctorSubject): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const table of tables.filter(({ isThere }) => isThere)) {
    const settings = operationReadSettings(database, "looking for other deployments");
    const rows = await transaction(database.pool, settings, (session) =>
      session.rows(readersSql(database.tables, table)),
    );
    const readers = rows.map(readerOf);
    const [me, ...others] = readers.flatMap((reader) => {
      const rivals = conflictingReaders(reader, readers);
      return rivals.length === 0 ? [] : [reader, ...rivals];
    });
    if (me === undefined) continue;
    findings.push({
      severity: "error",
      check: "owners",
      what: sharedTableText(
        table,
        me,
        others.filter(({ instance }) => instance !== me.instance),
      ),
      fix: `Stop one of them, or divide the events by OUTBOX_ROUTES; to hand over on purpose:\noutbox-relay pause '${me.pipeline}' --hand-over`,
    });
  }
  return findings;
}
