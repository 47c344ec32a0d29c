import { RelayError } from "../core/errors.ts";
import type { TypeFilter } from "../ports/queue-store.ts";
import { displayTable, jsonSql, quoteLiteral, type TableName } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import type { Session } from "./session.ts";
import { statement } from "./transaction.ts";

interface PipelineRegistration {
  readonly name: string;
  readonly source: TableName;
  /** Proposed; the number stored in the database wins. */
  readonly lanes: number;
  /** Which events it reads. */
  readonly takes: TypeFilter;
}

/** The destination in a pipeline's name, without the type list that a relay for some types appends. */
export function destinationOf(pipeline: string): string {
  return pipeline.slice(pipeline.lastIndexOf("->") + 2).replace(/\[.*\]$/s, "");
}

/** Makes sure that the pipeline and its lanes have rows. Safe to run concurrently; returns the number of lanes. */
export async function registerPipeline(
  session: Session,
  database: Database,
  { name, source, lanes, takes }: PipelineRegistration,
): Promise<number> {
  const { destinations, pipelines, lanes: laneTable } = database.tables;
  // A new pipeline inherits the pause and the limit of its destination.
  await session.rows(
    `insert into ${pipelines} (name, source_schema, source_table, lanes, paused_at, paused_by, pause_reason,
       limit_per_second, limited_by, limit_reason)
     select $1, $2, $3, $4::int, d.paused_at, d.paused_by, d.pause_reason, d.limit_per_second, d.limited_by, d.limit_reason
     from (select 1) one left join ${destinations} d on d.name = $5
     on conflict (name) do nothing`,
    [name, source.schema, source.table, lanes, destinationOf(name)],
  );
  // Update before taking the shared lock: two transactions doing both in the other order would deadlock.
  await session.rows(
    `update ${pipelines} set takes = ${jsonSql(takes)}::jsonb, takes_at = clock_timestamp()
     where name = $1 and source_schema = $2 and source_table = $3`,
    [name, source.schema, source.table],
  );
  // Locked, so that the number of lanes cannot change between reading and using it.
  const [row] = await session.rows(
    `select lanes, source_schema, source_table from ${pipelines} where name = $1 for share`,
    [name],
  );
  const known = { schema: row?.[1] ?? "", table: row?.[2] ?? "" };
  if (displayTable(known) !== displayTable(source)) {
    const both = `${displayTable(known)}, not to ${displayTable(source)}`;
    throw new RelayError("CONFIG_INVALID", `The pipeline name ${JSON.stringify(name)} belongs to ${both}`);
  }
  const count = Number(row?.[0]);
  await session.rows(
    `insert into ${laneTable} (pipeline, lane) select $1::text, lane from generate_series(0, $2::int - 1) lane
     on conflict (pipeline, lane) do nothing`,
    [name, count],
  );
  return count;
}

const POLL_TIME_EVERY_MS = 30_000;

/** Keeps `last_poll_time` for operators, rarely enough to cost nothing; its failure never breaks a read. */
export function pollTimeKeeper(database: Database, pipeline: string): () => Promise<void> {
  let writtenMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const nowMs = performance.now();
    if (nowMs - writtenMs < POLL_TIME_EVERY_MS) return;
    writtenMs = nowMs;
    const settings = {
      context: database.errorContext("writing the poll time"),
      statementTimeoutMs: database.timeouts.statementMs,
      lockTimeoutMs: 100,
      synchronousCommit: "local" as const,
    };
    const text = `update ${database.tables.pipelines} set last_poll_time = clock_timestamp()
      where name = ${quoteLiteral(pipeline)}`;
    await statement(database.pool, settings, text).catch(() => {});
  };
}
