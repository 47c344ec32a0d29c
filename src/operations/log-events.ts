import { displayTable, quoteArray, type TableName } from "../postgres/identifiers.ts";
import type { RelayTables } from "../postgres/relay-tables.ts";
import { readTailShape, type TailShape } from "../sources/postgres/tail/tail-shape.ts";
import type { EventSource, OperationTarget } from "./event-source.ts";
import { columnsOf } from "./log-source.ts";

/**
 * The events of a log that is a table. Its rows say nothing of themselves: one is delivered when every reader has its
 * place behind it and keeps no copy of it waiting.
 */
export async function logEvents(
  { columns, database }: OperationTarget,
  name: TableName,
  pipelines: readonly string[],
  preset: "managed" | "tail",
): Promise<EventSource> {
  const names = columnsOf(preset, columns);
  const shape = await readTailShape(database, name, { names, xid: names.xid });
  const delivered = deliveredSql(shape, database.tables, pipelines);
  return {
    name: displayTable(name),
    pipelines,
    table: shape.events,
    order: shape.position,
    waiting: `not ${delivered}`,
    delivered,
    givenUp: null,
    setBack: null,
    setAside: null,
    isParked: false,
  };
}

function deliveredSql(shape: TailShape, { lanes, parked, pipelines }: RelayTables, names: readonly string[]): string {
  const { id, key } = shape.events;
  const readers = `any(${quoteArray(names)}::text[])`;
  const hash = `hashtextextended(coalesce(${key}, ${id}::text) collate "C", 0) & 9223372036854775807`;
  return `(not exists (select from ${parked} k where k.pipeline = ${readers} and k.event_id = ${id}::text)
    and not exists (select from ${pipelines} p join ${lanes} l on l.pipeline = p.name
      where p.name = ${readers} and l.lane = mod(${hash}, p.lanes::bigint) and (${behindSql(shape)}) is not true))`;
}

/** True for a row that lies behind the place of the lane `l`. */
function behindSql({ position, xid }: TailShape): string {
  const upTo = `${position} <= (l.position ->> 'after')::bigint`;
  if (xid === null) return upTo;
  const sees = (snapshot: string) => `pg_visible_in_snapshot(${xid}, (l.position ->> '${snapshot}')::pg_snapshot)`;
  return `${sees("from")} or (${sees("to")} and ${upTo})`;
}
