import type { TypeFilter } from "../../../ports/queue-store.ts";
import { quoteLiteral } from "../../../postgres/identifiers.ts";
import { typeCondition } from "../../../postgres/type-condition.ts";
import { eventColumnsSql, eventFromSql, laneSql } from "../event-columns.ts";
import { BEGINNING, type Difference, endedSince, parseSnapshot } from "./difference.ts";
import type { TailShape } from "./tail-shape.ts";

/** What a pipeline reads of an append-only table. */
export interface TailScope {
  readonly shape: TailShape;
  readonly types: TypeFilter;
  readonly payloadBytesMax: number;
  readonly laneCount: number;
}

/** The table itself, under the name that all fragments use. */
export const tableSql = ({ shape }: TailScope): string => `${shape.events.quotedName} t`;

/** What belongs to the pipeline and to these lanes; `[]` where everything does. */
export function filterConditions({ shape, types, laneCount }: TailScope, lanes: readonly number[]): readonly string[] {
  const conditions: string[] = [];
  if (lanes.length < laneCount) {
    conditions.push(`${laneSql(shape.events, laneCount)} in (${lanes.length > 0 ? lanes.join(", ") : "null"})`);
  }
  if (types !== null) conditions.push(typeCondition(shape.events, types, "mine"));
  return conditions;
}

/** The columns that `EventReader` understands, then the position. */
export function columnsSql({ shape, laneCount, payloadBytesMax }: TailScope): string {
  return `${eventColumnsSql(shape.events, laneCount, payloadBytesMax)}, ${shape.position}`;
}

/** `rows` as `t`, with what the columns need beside it. */
export function fromSql({ shape, payloadBytesMax }: TailScope, rows: string): string {
  return eventFromSql({ ...shape.events, quotedName: rows }, payloadBytesMax);
}

export const xidLiteral = (xid: bigint): string => `'${xid}'::xid8`;

export const xidArray = (xids: readonly bigint[]): string => `'{${xids.join(",")}}'::xid8[]`;

/**
 * The difference as two sets, each with an index to find it by: what began after the older snapshot, and what it saw
 * running. Whatever of them is visible now is in the difference, if the newer snapshot is now; else the newer one says.
 * Rows that claim to be of the future, after a restore, are in none.
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

export const snapshotLiteral = (text: string): string => `${quoteLiteral(text)}::pg_snapshot`;

export const isBeginning = ({ from }: Difference): boolean => from === BEGINNING;
