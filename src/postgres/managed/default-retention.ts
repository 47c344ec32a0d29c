import { displayTable, quoteTable, type TableName } from "../identifiers.ts";
import type { Database } from "../pool.ts";
import { transaction } from "../transaction.ts";
import { isUnreadSql, lanePositionsSql, pipelinesOf } from "./log-needs.ts";
import { type ManagedFinding, managedLaneSql } from "./managed-names.ts";
import type { Partition } from "./managed-table.ts";

/** Steps are short, so that none holds locks or a snapshot for long. */
const STEP_ROWS = 1_000;
const STEPS_MAX = 50;

interface DefaultPruned {
  readonly deleted: number;
  readonly findings: readonly ManagedFinding[];
}

/** DEFAULT is never dropped, so its old rows are deleted one by one once they are read. */
export async function pruneDefault(
  database: Database,
  table: TableName,
  partitions: readonly Partition[],
  { oldMs, forcedMs }: { readonly oldMs: number; readonly forcedMs: number },
): Promise<DefaultPruned> {
  const partition = partitions.find(({ range }) => range === null);
  let deleted = 0;
  let unread = 0;
  for (let step = 0; partition !== undefined && step < STEPS_MAX; step += 1) {
    const [rows, unreadRows] = await deleteStep(database, table, partition.name, { oldMs, forcedMs });
    deleted += rows;
    unread += unreadRows;
    if (rows < STEP_ROWS) break;
  }
  return { deleted, findings: unread === 0 ? [] : [deletedUnread(table, unread)] };
}

async function deleteStep(
  database: Database,
  table: TableName,
  partition: TableName,
  { oldMs, forcedMs }: { readonly oldMs: number; readonly forcedMs: number },
): Promise<readonly [number, number]> {
  const { tables } = database;
  const quoted = quoteTable(partition);
  const settings = {
    context: database.errorContext("deleting old events", displayTable(partition)),
    statementTimeoutMs: database.timeouts.statementMs,
    lockTimeoutMs: database.timeouts.lockMs,
  };
  return await transaction(database.pool, settings, async (session) => {
    const needed = (await pipelinesOf(session, database, table)).map(
      ({ name, lanes }) => `exists (select from (${lanePositionsSql(tables, name)}) lane
        where lane.lane = ${managedLaneSql(lanes)} and ${isUnreadSql("lane")})`,
    );
    const [row] = await session.rows(
      `with old as (
         select t.ctid as place, t.created_at, (${["false", ...needed].join(" or ")}) as needed
         from ${quoted} t where t.created_at < to_timestamp($1::float8 / 1000)
       ), gone as (
         delete from ${quoted} d using (
           select place, needed from old
           where not needed or created_at < to_timestamp($2::float8 / 1000) limit ${STEP_ROWS}
         ) o where d.ctid = o.place returning o.needed
       ), recorded as (
         insert into ${tables.technicalEvents} (at, name, detail)
         select clock_timestamp(), 'EventsDroppedUnread', jsonb_build_object('source', $4::text, 'partition', $3::text, 'rows', count(*),
           'reason', 'rows were dropped unread')
         from gone where needed having count(*) > 0
       )
       select count(*), count(*) filter (where needed) from gone`,
      [
        String(oldMs),
        Number.isFinite(forcedMs) ? String(forcedMs) : "-Infinity",
        displayTable(partition),
        displayTable(table),
      ],
    );
    return [Number(row?.[0]), Number(row?.[1])] as const;
  });
}

function deletedUnread(table: TableName, rows: number): ManagedFinding {
  return {
    severity: "error",
    what: `rows were dropped unread: ${rows} events in DEFAULT of ${displayTable(table)}`,
    fix: "A subscriber lagged behind by more than the limit. Send it these events by other means, or raise the limit.",
  };
}
