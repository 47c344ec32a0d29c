import { RelayError } from "../core/errors.ts";
import { displayTable, quoteLiteral, type TableName } from "./identifiers.ts";
import type { Database } from "./pool.ts";
import type { Session } from "./session.ts";
import { statement } from "./transaction.ts";

interface PipelineRegistration {
  readonly name: string;
  readonly source: TableName;
  /** Proposed; what the database says wins. */
  readonly lanes: number;
}

/** Makes sure that the pipeline and its lanes have rows. Safe beside others; returns the number of lanes. */
export async function registerPipeline(
  session: Session,
  database: Database,
  { name, source, lanes }: PipelineRegistration,
): Promise<number> {
  const { pipelines, lanes: laneTable } = database.tables;
  await session.rows(
    `insert into ${pipelines} (name, source_schema, source_table, lanes) values ($1, $2, $3, $4)
     on conflict (name) do nothing`,
    [name, source.schema, source.table, lanes],
  );
  // Locked: a number of lanes that changes just now must not be read before and used after.
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

/** Keeps `last_poll_time` for operators, but so rarely that it costs nothing; its failure never breaks a read. */
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
