import { quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import type { RelayTables } from "../relay-tables.ts";
import { SERVER_INCARNATION } from "../server-incarnation.ts";
import type { Session } from "../session.ts";
import { transaction } from "../transaction.ts";
import { managedLaneSql } from "./managed-names.ts";

/** What a pipeline has not read of a partition. */
export interface Unread {
  readonly pipeline: string;
  readonly lanes: readonly number[];
  /** Counted up to the caller's limit. */
  readonly rows: number;
  /** When the lane that lags most last settled something; null: never. */
  readonly settledAt: string | null;
}

/** What the pipelines of a table still need of a partition. */
export interface Needs {
  readonly unread: readonly Unread[];
  /** Rows that this snapshot does not see were not checked. */
  readonly snapshot: string;
  /** The position of each lane of each pipeline, as JSON. */
  readonly positions: string;
  /** The server's incarnation: snapshots from before a crash are void after it. */
  readonly incarnation: string;
}

/** A partition may be large and completely read: only the index shows that quickly. */
export const BY_INDEX = { enable_seqscan: "off", jit: "off" };

/** Reads everything in one snapshot, so that a row is either checked here or found new when the partition is locked. */
export async function needsOf(
  database: Database,
  table: TableName,
  partition: TableName,
  rowsMax: number,
): Promise<Needs> {
  const settings = {
    context: database.errorContext("searching for unread events", quoteTable(partition)),
    statementTimeoutMs: database.timeouts.readMs,
    lockTimeoutMs: database.timeouts.lockMs,
    isolation: "repeatable read" as const,
    readOnly: true,
    settings: BY_INDEX,
  };
  return await transaction(database.pool, settings, async (session) => {
    const [row] = await session.rows(
      `select pg_current_snapshot()::text, (${positionsSql(database)})::text, ${SERVER_INCARNATION}`,
      [table.schema, table.table],
    );
    const unread: Unread[] = [];
    for (const pipeline of await pipelinesOf(session, database, table)) {
      const lanes = await session.rows(unreadSql(database.tables, quoteTable(partition), pipeline, rowsMax));
      if (lanes.length === 0) continue;
      const settled = lanes.map((lane) => lane[2] ?? null);
      unread.push({
        pipeline: pipeline.name,
        lanes: lanes.map((lane) => Number(lane[0])),
        rows: lanes.reduce((sum, lane) => sum + Number(lane[1]), 0),
        settledAt: settled.includes(null) ? null : (settled.sort()[0] ?? null),
      });
    }
    return { unread, snapshot: row?.[0] ?? "", positions: row?.[1] ?? "{}", incarnation: row?.[2] ?? "" };
  });
}

/** The pipelines that read the table now or before. */
export async function pipelinesOf(session: Session, { tables }: Database, table: TableName) {
  const rows = await session.rows(
    `select name, lanes from ${tables.pipelines} where source_schema = $1 and source_table = $2 order by name`,
    [table.schema, table.table],
  );
  return rows.map(([name, lanes]) => ({ name: name ?? "", lanes: Number(lanes) }));
}

/** By pipeline, its number of lanes and the lane. The parameters are schema and table. */
function positionsSql({ tables }: Database): string {
  return `select coalesce(jsonb_object_agg(jsonb_build_array(l.pipeline, p.lanes, l.lane)::text, l.position), '{}')
    from ${tables.lanes} l join ${tables.pipelines} p on p.name = l.pipeline
    where p.source_schema = $1 and p.source_table = $2`;
}

/** True where a lane's position is before its former one, or somewhere else. */
const WAS_MOVED_BACK = `(jsonb_typeof(a.place) = 'object' and (jsonb_typeof(b.place) <> 'object' or case
  when b.place ->> 'from' is distinct from a.place ->> 'from' then
    pg_snapshot_xmin((b.place ->> 'from')::pg_snapshot)
      < pg_snapshot_xmin(coalesce(a.place ->> 'to', a.place ->> 'from')::pg_snapshot)
    or pg_snapshot_xmax((b.place ->> 'from')::pg_snapshot)
      < pg_snapshot_xmax(coalesce(a.place ->> 'to', a.place ->> 'from')::pg_snapshot)
  when a.place ->> 'to' is null then false
  else b.place ->> 'to' is distinct from a.place ->> 'to'
    or (b.place ->> 'after')::bigint < (a.place ->> 'after')::bigint end))`;

/**
 * True when rows were added to the partition since the check, or a lane was moved back or is new: then the check is
 * void. Call it under the lock of the partition, when all of its writers have ended.
 */
export async function areNeedsOutdated(
  session: Session,
  database: Database,
  { table, partition, needs }: { readonly table: TableName; readonly partition: TableName; readonly needs: Needs },
): Promise<boolean> {
  const quoted = quoteTable(partition);
  const [row] = await session.rows(
    `select ${SERVER_INCARNATION} <> $5
       or exists (select from ${quoted} t where t.xid >= pg_snapshot_xmax($3::pg_snapshot))
       or exists (select from ${quoted} t where t.xid = any(array(select pg_snapshot_xip($3::pg_snapshot))))
       or exists (
         select from jsonb_each((${positionsSql(database)})) b(lane, place)
         left join jsonb_each($4::jsonb) a(lane, place) using (lane)
         where a.lane is null or ${WAS_MOVED_BACK})`,
    [table.schema, table.table, needs.snapshot, needs.positions, needs.incarnation],
  );
  return row?.[0] !== "f";
}

interface LogPipeline {
  readonly name: string;
  readonly lanes: number;
}

/**
 * Counts the rows of a partition that a pipeline has not read, by lane, up to `rowsMax`. A lane without progress
 * because no events are written for it keeps nothing.
 */
export function unreadSql(
  tables: RelayTables,
  quotedPartition: string,
  pipeline: LogPipeline,
  rowsMax: number,
): string {
  return `
with lane as materialized (${lanePositionsSql(tables, pipeline.name)}
), floor as (
  select coalesce((select pg_snapshot_xmin(seen) from lane order by seen is not null, pg_snapshot_xmin(seen) limit 1),
    '0'::xid8) as xid
), unread as (
  select lane.lane, lane.settled_at
  from ${quotedPartition} t join lane on lane.lane = ${managedLaneSql(pipeline.lanes)}::bigint
  where t.xid >= (select xid from floor) and ${isUnreadSql("lane")}
  limit ${rowsMax}
)
select lane, count(*), min(settled_at)::text from unread group by lane order by lane`;
}

/** The positions of a pipeline's lanes, as columns: `lane, settled_at, seen, opened, after`. A select. */
export function lanePositionsSql({ lanes }: RelayTables, pipeline: string): string {
  return `select l.lane::bigint as lane, l.settled_at, (l.position ->> 'from')::pg_snapshot as seen,
    (l.position ->> 'to')::pg_snapshot as opened, coalesce((l.position ->> 'after')::bigint, 0) as after,
    l.position ->> 'ahead' as ahead
  from ${lanes} l where l.pipeline = ${quoteLiteral(pipeline)}`;
}

/**
 * True for a row `t` that its lane has not read: its transaction had not ended in the snapshot that was read
 * completely, and it is not in the part read of the next one. A lane without a position has read nothing.
 */
export function isUnreadSql(lane: string): string {
  return `(${lane}.seen is null or (not pg_visible_in_snapshot(t.xid, ${lane}.seen)
    and (${lane}.opened is null or t.id > ${lane}.after or not pg_visible_in_snapshot(t.xid, ${lane}.opened))))`;
}
