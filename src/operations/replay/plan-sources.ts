import { isRelayError } from "../../core/errors.ts";
import type { TailShape } from "../../sources/postgres/tail/tail-shape.ts";
import { type EventSource, eventSources, type OperationTarget, parkedEvents } from "../events/event-source.ts";
import { readLogShape, shapedLogEvents } from "../logs/log-events.ts";
import { type KnownPipeline, knownPipelines } from "../pipelines/pipelines.ts";

/** A log that is a table, as one pipeline reads it. */
interface PlanLog {
  readonly events: EventSource;
  readonly shape: TailShape;
}

/** The sources of a plan's events, by pipeline. Read before the work starts, so that a round needs one connection. */
export interface PlanSources {
  readonly pipelines: readonly KnownPipeline[];
  /** Waiting events: rows of the table, or copies beside a log. Null when they cannot be read. */
  waiting(source: string, pipeline: string): EventSource | null;
  /** Null for a queue, for the write-ahead log, and when it cannot be read. */
  log(pipeline: string): PlanLog | null;
  /** Why a source cannot be read. */
  whyNot(source: string): string;
}

export async function planSources(target: OperationTarget): Promise<PlanSources> {
  const { database } = target;
  const pipelines = await knownPipelines(database);
  const { usable, broken } = await eventSources(target);
  const logs = new Map<string, PlanLog | null>();
  for (const known of pipelines) if (known.log !== null) logs.set(known.pipeline, await planLog(target, known));
  return {
    pipelines,
    waiting: (source, pipeline) => {
      const known = pipelines.find((it) => it.pipeline === pipeline);
      if (known !== undefined && known.log !== null) return parkedEvents(database, known, pipeline);
      return usable.find(({ name }) => name === source) ?? null;
    },
    log: (pipeline) => logs.get(pipeline) ?? null,
    whyNot: (source) => broken.find((it) => it.source === source)?.reason ?? "its table is gone",
  };
}

async function planLog(target: OperationTarget, known: KnownPipeline): Promise<PlanLog | null> {
  const { log, pipeline } = known;
  if (log === null || log === "wal") return null;
  try {
    const shape = await readLogShape(target, known, log);
    return { events: await shapedLogEvents(target.database, shape, [pipeline]), shape };
  } catch (error) {
    if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
    return null;
  }
}
