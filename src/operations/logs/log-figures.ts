import type { Database } from "../../postgres/pool.ts";
import { knownPipelines } from "../pipelines/pipelines.ts";
import { parkedCounts, slotOf } from "./log-list.ts";
import { retentionWaitsFor } from "./log-retention.ts";

/** Metrics of one reader of a log. */
export interface LogFigure {
  readonly pipeline: string;
  readonly parked: number;
  readonly slotRetainedBytes: number | null;
  readonly isRetentionWaiting: boolean;
}

/** What alerts need to know of every reader of a log besides its backlog, also of readers that no longer run. */
export async function logFigures(database: Database, retentionMs: number | null): Promise<readonly LogFigure[]> {
  const known = (await knownPipelines(database)).filter(({ log }) => log !== null);
  if (known.length === 0) return [];
  const parked = await parkedCounts(database);
  const figures: LogFigure[] = [];
  for (const pipeline of known) {
    const slot = pipeline.log === "wal" ? await slotOf(database, pipeline.pipeline) : null;
    figures.push({
      pipeline: pipeline.pipeline,
      parked: parked.get(pipeline.pipeline) ?? 0,
      slotRetainedBytes: slot?.retainedBytes ?? null,
      isRetentionWaiting: (await retentionWaitsFor(database, pipeline, retentionMs)) !== null,
    });
  }
  return figures;
}
