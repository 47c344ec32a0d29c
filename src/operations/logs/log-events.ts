import { displayTable, quoteArray, quoteLiteral, type TableName } from "../../postgres/identifiers.ts";
import { hasBlockFilter } from "../../postgres/managed/block-filter.ts";
import type { Database } from "../../postgres/pool.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import { statement } from "../../postgres/transaction.ts";
import { readTailShape, type TailShape } from "../../sources/postgres/tail/tail-shape.ts";
import type { EventSource, OperationTarget } from "../events/event-source.ts";
import { operationReadSettings } from "../read-settings.ts";
import { columnsOf } from "./log-source.ts";

interface LogShape extends TailShape {
  readonly hasBlockFilters: boolean;
}

/** Reads the shape of a log's table. */
export async function readLogShape(
  { columns, database }: OperationTarget,
  name: TableName,
  preset: "managed" | "tail",
): Promise<LogShape> {
  const names = columnsOf(preset, columns);
  const shape = await readTailShape(database, name, { names, xid: names.xid });
  return { ...shape, hasBlockFilters: preset === "managed" && (await hasBlockFilter(database, name)) };
}

/**
 * The events of a log that is a table. Its rows have no state: one is delivered when every reader has passed it and
 * keeps no waiting copy of it.
 */
export async function shapedLogEvents(
  database: Database,
  shape: LogShape,
  pipelines: readonly string[],
  /** What all of their lanes have passed, if known already. */
  known?: string | null,
): Promise<EventSource> {
  const reached = known === undefined ? await reachedBy(database, shape, pipelines) : known;
  const unread = unreadSql(shape, reached);
  const delivered = deliveredSql(shape, database.tables, pipelines, unread);
  return {
    name: displayTable(shape.events.name),
    pipelines,
    table: shape.events,
    order: shape.position,
    waiting: `not ${delivered}`,
    delivered,
    givenUp: null,
    reader: null,
    readBy: null,
    scheduledAt: null,
    setBack: null,
    setAside: null,
    unmark: null,
    unread,
    hasBlockFilters: shape.hasBlockFilters,
    isParked: false,
  };
}

/**
 * Every lane has passed all rows before this position: for most rows one comparison instead of a lookup of the lanes.
 * Positions only advance, so a value read now stays valid.
 */
function unreadSql({ position, xid }: TailShape, reached: string | null): string {
  const [column, type] = xid === null ? [position, "bigint"] : [xid, "xid8"];
  return `(${column} >= ${quoteLiteral(reached ?? "0")}::${type})`;
}

async function reachedBy(database: Database, { xid }: TailShape, names: readonly string[]): Promise<string | null> {
  const reached =
    xid === null ? "(l.position ->> 'after')::bigint" : "pg_snapshot_xmin((l.position ->> 'from')::pg_snapshot)";
  const [row] = await statement(
    database.pool,
    operationReadSettings(database, "reading the positions of the lanes"),
    `select case when bool_and((${reached}) is not null) then (array_agg(${reached} order by ${reached}))[1] end
     from ${database.tables.lanes} l where l.pipeline = any(${quoteArray(names)}::text[])`,
  );
  return row?.[0] ?? null;
}

function deliveredSql(
  shape: TailShape,
  { lanes, parked, pipelines }: RelayTables,
  names: readonly string[],
  unread: string,
): string {
  const { id, key } = shape.events;
  const readers = `any(${quoteArray(names)}::text[])`;
  const hash = `hashtextextended(coalesce(${key}, ${id}::text) collate "C", 0) & 9223372036854775807`;
  return `(not exists (select from ${parked} k where k.pipeline = ${readers} and k.event_id = ${id}::text)
    and (not ${unread} or not exists (select from ${pipelines} p join ${lanes} l on l.pipeline = p.name
      where p.name = ${readers} and l.lane = mod(${hash}, p.lanes::bigint) and (${behindSql(shape)}) is not true)))`;
}

/** True for a row that the lane `l` has passed. */
function behindSql({ position, xid }: TailShape): string {
  const upTo = `${position} <= (l.position ->> 'after')::bigint`;
  if (xid === null) return upTo;
  const sees = (snapshot: string) => `pg_visible_in_snapshot(${xid}, (l.position ->> '${snapshot}')::pg_snapshot)`;
  return `${sees("from")} or (${sees("to")} and ${upTo})`;
}
