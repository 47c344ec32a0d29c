import { isRelayError, reasonOf } from "../../core/errors.ts";
import { displayTable, quoteTable } from "../../postgres/identifiers.ts";
import { checkTable } from "../../sources/postgres/openoutbox/table-check.ts";
import { readShape } from "../../sources/postgres/table-discovery.ts";
import type { DoctorSubject, DoctorTable, Finding, ShapedTable } from "./finding.ts";

interface ExaminedTables {
  readonly findings: readonly Finding[];
  readonly shaped: readonly ShapedTable[];
}

/** Tables that are missing or unreadable, and the shapes of the others. */
export async function checkTables(subject: DoctorSubject): Promise<ExaminedTables> {
  const { database, columns, tables } = subject;
  const findings: Finding[] = tables.length === 0 && !subject.hasLogs ? [noTables()] : [];
  const shaped: ShapedTable[] = [];
  for (const table of tables) {
    try {
      // No table has this name: it is missing, or the name belongs to something else.
      if (!table.isThere) await readShape(database, table, columns);
      else if (table.isOpenOutbox) {
        const { claims } = await checkTable(database, table);
        if (!claims?.hasOrderIndex) findings.push(openOutboxIndex(table));
      } else shaped.push({ table, shape: await readShape(database, table, columns) });
    } catch (error) {
      // The check of the grants reports missing rights, with the statement that fixes them.
      if (isRelayError(error, "GRANT_MISSING")) continue;
      if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
      findings.push(isRelayError(error, "TABLE_MISSING") ? missing(error) : unreadable(error));
    }
  }
  return { findings, shaped };
}

function noTables(): Finding {
  return {
    severity: "error",
    check: "tables",
    what: "No schema has an outbox table",
    fix: "Set OUTBOX_SCHEMAS to the schemas that have one, or OUTBOX_TABLE=schema.table for another name.",
  };
}

function missing(error: Error): Finding {
  const [what = ""] = reasonOf(error).split(/ \[[A-Z_]+\] /);
  return { severity: "error", check: "tables", what, fix: `Create it, or fix OUTBOX_SCHEMAS or OUTBOX_TABLE.` };
}

function unreadable(error: Error): Finding {
  const [what = "", fix = ""] = reasonOf(error).split(/ \[[A-Z_]+\] /);
  return { severity: "error", check: "tables", what, fix: `${fix} (OUTBOX_COLUMNS=role=column,... sets them)` };
}

function openOutboxIndex(table: DoctorTable): Finding {
  return {
    severity: "warning",
    check: "index",
    what: `${displayTable(table)} has no index that returns the waiting events in order: each claim sorts all of them`,
    fix: `create index concurrently on ${quoteTable(table)} (available_at, created_at) where status = 'PENDING';`,
  };
}
