import type { RelayTables } from "../relay-tables.ts";
import { isUnreadSql, lanePositionsSql } from "./lane-positions.ts";
import { managedLaneSql } from "./managed-names.ts";

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
