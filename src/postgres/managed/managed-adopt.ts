import { displayTable, quoteLiteral, quoteTable, type TableName } from "../identifiers.ts";
import { systemId } from "../identity.ts";
import type { Database } from "../pool.ts";
import type { Session } from "../session.ts";
import { transaction } from "../transaction.ts";
import { isUnreadSql, lanePositionsSql, pipelinesOf } from "./log-needs.ts";
import { managedLaneSql } from "./managed-names.ts";
import { requireManaged } from "./managed-table.ts";

interface Reanchored {
  /** Events that were parked, by pipeline. */
  readonly parked: ReadonlyMap<string, number>;
  /** Rows whose transaction id was reset. */
  readonly rows: number;
}

/** The rows that a lane settled ahead of its position, from the stored text; null where the text is invalid. */
type ReadAhead = (ahead: string) => Iterable<number> | null;

/** The table is rewritten once. */
const STATEMENT_MS = 3_600_000;
/** A transaction id that every snapshot of every server has passed. */
const FROZEN_XID = "3";

/**
 * Repairs positions after a restore, when transaction ids have another meaning. The unread rows of each lane are copied
 * to the parked events, every row is marked as read by all, and every lane starts at the current snapshot. It is one
 * transaction and one snapshot: rows written meanwhile are after it and are read later. Current owners lose their
 * lanes.
 */
export async function reanchor(database: Database, table: TableName, readAhead: ReadAhead): Promise<Reanchored> {
  const { payload } = await requireManaged(database, table);
  const settings = {
    context: database.errorContext("re-anchoring the log", displayTable(table)),
    statementTimeoutMs: STATEMENT_MS,
    lockTimeoutMs: database.timeouts.lockMs,
    isolation: "repeatable read" as const,
  };
  return await transaction(database.pool, settings, async (session) => {
    const isForeign = await isOtherCluster(session, database);
    const parked = new Map<string, number>();
    for (const pipeline of await pipelinesOf(session, database, table)) {
      const ahead = await aheadOf(session, database, pipeline.name, readAhead);
      const [row] = await session.rows(parkUnreadSql(database, table, { ...pipeline, payload, isForeign }), [ahead]);
      parked.set(pipeline.name, Number(row?.[0]));
    }
    const [rows] = await session.rows(
      `with anchored as (update ${quoteTable(table)} set xid = '${FROZEN_XID}' where xid <> '${FROZEN_XID}' returning 1)
       select count(*) from anchored`,
    );
    await session.rows(
      `update ${database.tables.lanes} l set
         position = jsonb_build_object('from', pg_current_snapshot()::text, 'to', null, 'after', '0', 'ahead', ''),
         owner = null,
         epoch = greatest(l.epoch + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)
       from ${database.tables.pipelines} p
       where p.name = l.pipeline and p.source_schema = $1 and p.source_table = $2`,
      [table.schema, table.table],
    );
    return { parked, rows: Number(rows?.[0]) };
  });
}

/** No two rows of a table have the same position, so one list serves all lanes. */
async function aheadOf(session: Session, { tables }: Database, pipeline: string, read: ReadAhead): Promise<string> {
  const rows = await session.rows(`select ahead from (${lanePositionsSql(tables, pipeline)}) lane where ahead <> ''`);
  return `{${rows.flatMap((row) => [...(read(row[0] ?? "") ?? [])]).join(",")}}`;
}

/** True also where the server hides its identifier, since it may be another one. */
async function isOtherCluster(session: Session, { tables }: Database): Promise<boolean> {
  const [made] = await session.rows(`select system_id from ${tables.identity}`);
  const runsOn = await systemId(session);
  return made?.[0] == null || runsOn === null || made[0] !== runsOn;
}

interface Parking {
  readonly name: string;
  readonly lanes: number;
  readonly payload: "text" | "bytea";
  readonly isForeign: boolean;
}

/**
 * Parks the rows that a lane had not read by the old transaction ids. On another server it also parks rows written
 * there since the restore: their ids are of that server, from the restore on, and no later than that of the row version
 * itself.
 */
function parkUnreadSql({ tables }: Database, table: TableName, { name, lanes, payload, isForeign }: Parking): string {
  const low = "(t.xid::text::numeric % 4294967296)";
  const isNew = `${low} between (select coalesce(min(r.xmin::text::bigint), 0) from ${quoteTable(table)} r) and t.xmin::text::bigint`;
  const trace = `jsonb_strip_nulls(jsonb_build_object('traceparent', t.traceparent, 'tracestate', t.tracestate))`;
  return `
with lane as materialized (${lanePositionsSql(tables, name)}
), added as (
  insert into ${tables.parked} (pipeline, event_id, place, event_type, event_key, payload, headers, correlation_id, created_at)
  select ${quoteLiteral(name)}, t.event_id::text, t.id, t.event_type, t.event_key, ${payload === "bytea" ? "t.payload" : "convert_to(t.payload, 'UTF8')"},
    case when t.headers is null and t.traceparent is null then null
      when jsonb_typeof(t.headers) <> 'object' then t.headers::json else (${trace} || coalesce(t.headers, '{}'))::json end,
    t.correlation_id, t.created_at
  from ${quoteTable(table)} t join lane on lane.lane = ${managedLaneSql(lanes)}::bigint
  where (${isUnreadSql("lane")} and t.id <> all($1::bigint[])) ${isForeign ? `or ${isNew}` : ""}
  on conflict (pipeline, event_id) do nothing
  returning 1
)
select count(*) from added`;
}
