import { quoteTable, type TableName } from "../../postgres/identifiers.ts";
import { systemId } from "../../postgres/identity.ts";
import { reanchor } from "../../postgres/managed/managed-adopt.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { decodeMarks } from "../../sources/postgres/tail/marks.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { knownPipelines } from "../pipelines/pipelines.ts";

interface AnchoredLog {
  readonly source: string;
  /** Unread events that were copied beside the log, by pipeline. */
  readonly parked: ReadonlyMap<string, number>;
}

/**
 * Re-anchors managed outboxes whose positions are invalid here, because the database was restored on another server or
 * to an older state than its readers. The others keep their positions. Must be called before the relay's own identity
 * is changed.
 */
export async function anchorLogs(database: Database): Promise<readonly AnchoredLog[]> {
  const managed = (await knownPipelines(database)).filter(({ log }) => log === "managed");
  const tables = new Map(managed.map(({ schema, source, table }) => [source, { schema, table }]));
  const anchored: AnchoredLog[] = [];
  for (const [source, table] of tables) {
    if (!(await isAdrift(database, table))) continue;
    anchored.push({ source, parked: (await reanchor(database, table, decodeMarks)).parked });
  }
  return anchored;
}

async function isAdrift(database: Database, table: TableName): Promise<boolean> {
  const { lanes, pipelines } = database.tables;
  const settings = operationReadSettings(database, "checking the position of a log", quoteTable(table));
  return await transaction(database.pool, settings, async (session) => {
    if (await isElsewhere(session, database)) return true;
    const [row] = await session.rows(
      `select exists (select from ${quoteTable(table)} t where t.xid >= pg_snapshot_xmax(pg_current_snapshot()))
         or exists (select from ${lanes} l join ${pipelines} p on p.name = l.pipeline
           where p.source_schema = $1 and p.source_table = $2
             and pg_snapshot_xmax(coalesce(l.position ->> 'to', l.position ->> 'from')::pg_snapshot)
               > pg_snapshot_xmax(pg_current_snapshot()))`,
      [table.schema, table.table],
    );
    return row?.[0] === "t";
  });
}

async function isElsewhere(session: Session, { tables }: Database): Promise<boolean> {
  const [made] = await session.rows(`select system_id from ${tables.identity}`);
  const runsOn = await systemId(session);
  return made?.[0] != null && runsOn !== null && made[0] !== runsOn;
}
