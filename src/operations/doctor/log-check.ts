import { isRelayError } from "../../core/errors.ts";
import { quoteIdentifier, type TableName } from "../../postgres/identifiers.ts";
import { readColumns } from "../../sources/postgres/table-discovery.ts";
import { readTailShape, type TailShape } from "../../sources/postgres/tail/tail-shape.ts";
import { eventPartsOf } from "../../sources/postgres/wal/event-parts.ts";
import { columnsOf } from "../logs/log-source.ts";
import type { DoctorSubject, Finding, SampledTable } from "./finding.ts";
import { tableFault } from "./table-check.ts";

/** A log in a table, as its reader sees it. */
export interface ShapedLog extends SampledTable {
  /** Null for the write-ahead log. */
  readonly tail: TailShape | null;
  readonly isManaged: boolean;
  readonly hasKey: boolean;
  /** The usual name of a key column, for the statement that adds one. */
  readonly keyName: string;
}

interface ExaminedLogs {
  readonly findings: readonly Finding[];
  readonly logs: readonly ShapedLog[];
}

/** Logs that are missing or unreadable, and the shapes of the others. */
export async function checkLogs(subject: DoctorSubject): Promise<ExaminedLogs> {
  const { eventTables = [], managed = [], wal = [] } = subject;
  const isNamed = (table: TableName) => (it: TableName) => it.schema === table.schema && it.table === table.table;
  const findings: Finding[] = [];
  const logs: ShapedLog[] = [];
  for (const table of eventTables) {
    const ofWal = wal.find(isNamed(table));
    try {
      const shape = ofWal === undefined ? tailLog(subject, table, "tail") : walLog(subject, ofWal);
      logs.push(await shape);
    } catch (error) {
      findings.push(...tableFault(error));
    }
  }
  for (const table of managed) {
    // Its own check reports what is wrong with it.
    const shape = await tailLog(subject, table, "managed").catch(unlessOurs);
    if (shape !== null) logs.push(shape);
  }
  return { findings, logs };
}

function unlessOurs(error: unknown): null {
  if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
  return null;
}

async function tailLog(
  { columns, database }: DoctorSubject,
  table: TableName,
  preset: "managed" | "tail",
): Promise<ShapedLog> {
  const names = columnsOf(preset, columns);
  const tail = await readTailShape(database, table, { names, xid: names.xid });
  const { events, hasPositionIndex, position } = tail;
  return {
    table,
    tail,
    type: events.eventType,
    waiting: null,
    newest: hasPositionIndex ? position : null,
    aggregateType: null,
    isManaged: preset === "managed",
    hasKey: events.keyText !== "null",
    keyName: "aggregate_id",
  };
}

async function walLog(
  { columns: names, database }: DoctorSubject,
  table: TableName & { readonly isDebezium?: boolean },
): Promise<ShapedLog> {
  const isDebezium = table.isDebezium === true;
  const { columns, name } = await readColumns(database, table);
  const { key, type } = eventPartsOf(name, columns, names, isDebezium ? "debezium" : "plain", []);
  return {
    table: { schema: table.schema, table: table.table },
    tail: null,
    type: `coalesce(t.${quoteIdentifier(type)}::text, '')`,
    waiting: null,
    newest: null,
    aggregateType: isDebezium ? "t.aggregatetype::text" : null,
    isManaged: false,
    hasKey: key !== null,
    keyName: isDebezium ? "aggregateid" : "aggregate_id",
  };
}
