import { displayTable, quoteTable, type TableName } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { openOutboxShape } from "../../sources/postgres/openoutbox/openoutbox-table.ts";
import { operationReadSettings } from "../events/event-source.ts";
import type { DoctorSubject, EventSample, SampledTable, ShapedTable } from "./finding.ts";

const ROWS_READ = 10_000;
const TYPES_MAX = 200;

/** Every source that has routes, also those without a table that could be read. */
export function namedSources({ eventTables = [], managed = [], tables, wal = [] }: DoctorSubject): TableName[] {
  const all = [...tables, ...managed, ...eventTables, ...wal].map(({ schema, table }) => ({ schema, table }));
  return [...new Map(all.map((source) => [displayTable(source), source])).values()];
}

/** Queues as tables to sample. */
export function sampledQueues(
  { tables }: DoctorSubject,
  shaped: readonly Pick<ShapedTable, "table" | "shape">[],
): readonly SampledTable[] {
  const claimed = tables
    .filter(({ isOpenOutbox, isThere }) => isOpenOutbox && isThere)
    .map((table) => ({ table, shape: openOutboxShape(table) }));
  return [...shaped, ...claimed].map(({ shape, table }) => ({
    table,
    type: shape.eventType,
    waiting: shape.main,
    newest: null,
    aggregateType: null,
  }));
}

/** One sample per type, of waiting rows or the newest ones first, from a bounded number of rows. */
export async function sampleEvents(database: Database, sampled: SampledTable): Promise<readonly EventSample[]> {
  const { aggregateType, newest, table, type, waiting } = sampled;
  const rowsOf = (which: string) =>
    `(select ${type} as type, ${aggregateType ?? "null"} as aggregate from ${quoteTable(table)} t ${which} limit ${ROWS_READ})`;
  const parts = [
    ...(waiting === null ? [] : [rowsOf(`where ${waiting}`)]),
    rowsOf(newest === null ? "" : `order by ${newest} desc`),
  ];
  const settings = operationReadSettings(database, "reading the types", displayTable(table));
  const rows = await transaction(database.pool, settings, (session) =>
    session.rows(`select distinct type, aggregate from (${parts.join("\nunion all ")}) s limit ${TYPES_MAX}`),
  );
  return rows.map(([found, aggregatetype]) => ({
    type: found ?? "",
    headers: aggregatetype == null ? {} : { aggregatetype },
  }));
}
