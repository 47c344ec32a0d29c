import type { RelayTables } from "../relay-tables.ts";
import { isUnreadSql, lanePlacesSql } from "./lane-places.ts";
import { managedLaneSql } from "./managed-names.ts";

interface LogPipeline {
  readonly name: string;
  readonly lanes: number;
}

/**
 * Rows of a partition that a pipeline has not read, by lane, counted up to `rowsMax`. A lane that stands still, because
 * nothing is written for it, keeps nothing.
 */
export function unreadSql(
  tables: RelayTables,
  quotedPartition: string,
  pipeline: LogPipeline,
  rowsMax: number,
): string {
  return `
with lane as materialized (${lanePlacesSql(tables, pipeline.name)}
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
