import { isRelayError, reasonOf } from "../../core/errors.ts";
import { displayTable, quoteIdentifier, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { readRowSecurity, rowSecurityFix, rowSecurityText } from "../../postgres/row-security.ts";
import { checkTable } from "../../sources/postgres/openoutbox/table-check.ts";
import { inspectTable, readShape } from "../../sources/postgres/table-discovery.ts";
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
      findings.push(...tableFault(error));
    }
  }
  return { findings, shaped };
}

/** Why a table cannot be read. */
export function tableFault(error: unknown): readonly Finding[] {
  // The check of the grants reports missing rights, with the statement that fixes them.
  if (isRelayError(error, "GRANT_MISSING")) return [];
  if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
  return [isRelayError(error, "TABLE_MISSING") ? missing(error) : unreadable(error)];
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
  // Something else may have the name: then the sentence says what, and what to do.
  const fix = what.endsWith("does not exist")
    ? "Create it, or fix OUTBOX_SCHEMAS or OUTBOX_TABLE."
    : "Fix OUTBOX_TABLE.";
  return { severity: "error", check: "tables", what, fix };
}

function unreadable(error: Error): Finding {
  const [what = "", fix = ""] = reasonOf(error).split(/ \[[A-Z_]+\] /);
  const [fault = "", statement] = what.split(". Run: ");
  if (isRelayError(error, "INDEX_MISSING"))
    return { severity: "error", check: "index", what: fault, fix: statement ?? fix };
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

const CANDIDATES = ["event_id", "id"];

/** While the first of two rows with one id is in flight, the log reader skips the second: ids must be unique. */
export async function checkIds({ columns, database }: DoctorSubject, table: TableName): Promise<readonly Finding[]> {
  return await inspectTable(database, table, ["select"], async (session, facts) => {
    const names = facts.columns.map(({ name }) => name);
    const id = columns.id ?? CANDIDATES.find((candidate) => names.includes(candidate));
    if (id === undefined) return [];
    const [row] = await session.rows(UNIQUE_SQL, [facts.oid, id]);
    if (row?.[0] !== "f") return [];
    const statement = (on: string) => `create unique index concurrently on ${on} (${quoteIdentifier(id)});`;
    const fix = facts.isPartitioned
      ? `-- for each partition:\n${statement("PARTITION")}`
      : statement(quoteTable(table));
    const what = `${displayTable(table)} has no unique index on ${id}: of two rows with one id the second may be skipped`;
    return [{ severity: "warning", check: "ids", what, fix }];
  });
}

/** A unique index on the column alone, on the table or on each of its partitions. */
const UNIQUE_SQL = `
select bool_and(exists (
  select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
  where i.indrelid = leaf.relid and i.indisunique and i.indisvalid and i.indnkeyatts = 1 and i.indpred is null
    and a.attname = $2))
from (select $1::oid::regclass as relid where not exists (select from pg_partition_tree($1::oid))
  union all select relid from pg_partition_tree($1::oid) where isleaf) leaf`;

/**
 * Rows that the relay's role cannot see look like an empty outbox. Row-level security does not apply to the write-ahead
 * log.
 */
export async function checkRowSecurity(subject: DoctorSubject): Promise<readonly Finding[]> {
  const { database, eventTables = [], managed = [], tables, wal = [] } = subject;
  const findings: Finding[] = [];
  const decoded = new Set(wal.map(displayTable));
  const logs = [...managed, ...eventTables.filter((table) => !decoded.has(displayTable(table)))];
  const queues = tables.filter(({ isThere }) => isThere).map((table) => ({ table, use: "queue" as const }));
  for (const { table, use } of [...queues, ...logs.map((table) => ({ table, use: "log" as const }))]) {
    const found = await readRowSecurity(database, table, use);
    if (found === null) continue;
    const parts = { what: rowSecurityText(table, found), fix: rowSecurityFix(table, found) };
    findings.push({ severity: "error", check: "row security", ...parts });
  }
  return findings;
}
