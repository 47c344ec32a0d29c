import type { TypeFilter } from "../../../ports/queue-store.ts";
import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { typeCondition } from "../../../postgres/type-condition.ts";
import { eventColumnsSql, eventFromSql, laneSql } from "../event-columns.ts";
import { BEGINNING, type Difference, endedSince, parseSnapshot } from "./difference.ts";
import type { TailShape } from "./tail-shape.ts";

/** The part of an append-only table that a pipeline reads. */
export interface TailScope {
  readonly shape: TailShape;
  readonly types: TypeFilter;
  readonly payloadBytesMax: number;
  readonly laneCount: number;
}

/** The table itself, under the alias that all fragments use. */
export const tableSql = ({ shape }: TailScope): string => `${shape.events.quotedName} t`;

/** The conditions for the pipeline and these lanes; `[]` where every row belongs to them. */
export function filterConditions({ shape, types, laneCount }: TailScope, lanes: readonly number[]): readonly string[] {
  const conditions: string[] = [];
  if (lanes.length < laneCount) {
    conditions.push(`${laneSql(shape.events, laneCount)} in (${lanes.length > 0 ? lanes.join(", ") : "null"})`);
  }
  if (types !== null) conditions.push(typeCondition(shape.events, types, "mine"));
  return conditions;
}

/** The columns that `EventReader` reads, then the position. */
export function columnsSql({ shape, laneCount, payloadBytesMax }: TailScope): string {
  return `${eventColumnsSql(shape.events, laneCount, payloadBytesMax)}, ${shape.position}`;
}

/** `rows` as `t`, with the conversions that the columns need. */
export function fromSql({ shape, payloadBytesMax }: TailScope, rows: string): string {
  return eventFromSql({ ...shape.events, quotedName: rows }, payloadBytesMax);
}

/** A transaction id as a literal. */
export const xidLiteral = (xid: bigint): string => `'${xid}'::xid8`;

/** Transaction ids as an array literal. */
export const xidArray = (xids: readonly bigint[]): string => `'{${xids.join(",")}}'::xid8[]`;

/**
 * The difference as two sets, each found by an index: rows of transactions that began after the older snapshot, and
 * rows of those that ran in it. Rows visible in the newer snapshot are in the difference. Rows that name future
 * transactions, after a restore, are in neither set.
 */
export function armsOf(scope: TailScope, difference: Difference, after: number): readonly string[] {
  const { position, xid } = scope.shape;
  const behind = after > 0 ? ` and ${position} > ${after}` : "";
  const { end } = parseSnapshot(difference.from);
  const newer = difference.to === null ? "(select pg_current_snapshot())" : snapshotLiteral(difference.to);
  const below = difference.to === null ? "" : ` and ${xid} < ${xidLiteral(parseSnapshot(difference.to).end)}`;
  const visible = `pg_visible_in_snapshot(${xid}, ${newer})`;
  const arms = [`select * from ${tableSql(scope)} where ${xid} >= ${xidLiteral(end)}${below} and ${visible}${behind}`];
  const ended = endedSince(difference);
  if (ended.length > 0) {
    arms.push(`select * from ${tableSql(scope)} where ${xid} = any(${xidArray(ended)}) and ${visible}${behind}`);
  }
  return arms;
}

/** A snapshot as a literal. */
export const snapshotLiteral = (text: string): string => `${quoteLiteral(text)}::pg_snapshot`;

/** Whether the difference begins before every transaction: then the whole table is read. */
export const isBeginning = ({ from }: Difference): boolean => from === BEGINNING;
