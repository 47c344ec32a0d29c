import { isRelayError, reasonOf } from "../../core/errors.ts";
import { displayTable } from "../../postgres/identifiers.ts";
import { needsOf } from "../../postgres/managed/log-needs.ts";
import { readManaged } from "../../postgres/managed/managed-table.ts";
import type { Database } from "../../postgres/pool.ts";
import { statement } from "../../postgres/transaction.ts";
import type { LogPreset } from "../../sources/postgres/log/log-preset.ts";
import { type SlotHealth, slotHealth, slotName } from "../../sources/postgres/wal/slot.ts";
import { type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import { readerBacklog } from "../pipelines/pipeline-backlog.ts";
import { type KnownPipeline, knownPipelines } from "../pipelines/pipelines.ts";

/** One reader of a log. */
export interface ListedLog {
  readonly pipeline: string;
  readonly source: string;
  readonly kind: LogPreset;
  readonly subscriber: string | null;
  readonly isPaused: boolean;
  readonly lanes: readonly ListedPlace[];
  /** Unread events; null when they could not be counted. */
  readonly lag: number | null;
  /** The count is an estimate or a lower bound. */
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
  readonly countProblem: string | null;
  /** Events that were passed and still wait: failed ones, and those behind them. */
  readonly parked: number;
  readonly slot: ListedSlot | null;
  /** The oldest part of the log that retention would have dropped without this reader. */
  readonly retentionWaits: string | null;
}

/** The position of one lane. */
export interface ListedPlace {
  readonly lane: number;
  readonly isOwned: boolean;
  /** As stored; null for a lane that never started. */
  readonly position: Readonly<Record<string, unknown>> | null;
  readonly settledAt: string | null;
}

/** The replication slot of a reader. */
export interface ListedSlot {
  readonly name: string;
  readonly status: string;
  readonly isActive: boolean;
  readonly retainedBytes: number | null;
  /** How much more WAL may be written before the slot is lost; null without a limit. */
  readonly safeBytes: number | null;
}

/** Every pipeline that reads a log, with its positions. `retentionMs` is null where nothing is ever dropped. */
export async function listLogs(target: OperationTarget, retentionMs: number | null): Promise<readonly ListedLog[]> {
  const { database } = target;
  const known = (await knownPipelines(database)).filter(({ log }) => log !== null);
  const places = await readPlaces(database);
  const parked = await parkedCounts(database);
  const listed: ListedLog[] = [];
  // Sequentially: the caller can wait, the delivery cannot.
  for (const pipeline of known) {
    listed.push({
      pipeline: pipeline.pipeline,
      source: pipeline.source,
      kind: pipeline.log!,
      subscriber: pipeline.subscriber,
      isPaused: pipeline.pause !== null,
      lanes: places.get(pipeline.pipeline) ?? [],
      ...(await lagOf(target, pipeline)),
      parked: parked.get(pipeline.pipeline) ?? 0,
      slot: pipeline.log === "wal" ? await slotOf(database, pipeline.pipeline) : null,
      retentionWaits: await retentionWaitsFor(database, pipeline, retentionMs),
    });
  }
  return listed;
}

type Lag = Pick<ListedLog, "lag" | "isEstimate" | "oldestAgeMs" | "countProblem">;

async function lagOf(target: OperationTarget, pipeline: KnownPipeline): Promise<Lag> {
  const unknown = { lag: null, isEstimate: true, oldestAgeMs: null };
  // A slot shows its content only to its reader, and only once, so its lag cannot be counted in events.
  if (pipeline.log === "wal") return { ...unknown, countProblem: null };
  try {
    const { isEstimate, oldestAgeMs, pending } = await readerBacklog(target, pipeline);
    return { lag: pending, isEstimate, oldestAgeMs, countProblem: null };
  } catch (error) {
    if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
    return { ...unknown, countProblem: reasonOf(error) };
  }
}

async function readPlaces(database: Database): Promise<ReadonlyMap<string, ListedPlace[]>> {
  const { instances, lanes } = database.tables;
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "reading the positions in the logs"),
    `select l.pipeline, l.lane, i.id is not null, l.position::text, to_char(l.settled_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
     from ${lanes} l left join ${instances} i on i.id = l.owner and i.alive_until > clock_timestamp()
     order by l.pipeline, l.lane`,
  );
  const places = rows.map((row) => ({
    pipeline: row[0] ?? "",
    lane: Number(row[1]),
    isOwned: row[2] === "t",
    position: row[3] == null ? null : (JSON.parse(row[3]) as ListedPlace["position"]),
    settledAt: row[4] ?? null,
  }));
  return new Map(
    [...Map.groupBy(places, ({ pipeline }) => pipeline)].map(([pipeline, some]) => [
      pipeline,
      some.map(({ pipeline: _, ...place }) => place),
    ]),
  );
}

/** Parked events by pipeline. */
export async function parkedCounts(database: Database): Promise<ReadonlyMap<string, number>> {
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "counting parked events"),
    `select pipeline, count(*) from ${database.tables.parked} group by 1`,
  );
  return new Map(rows.map((row) => [row[0] ?? "", Number(row[1])]));
}

/** Null without a slot: the pipeline never started, or the slot was dropped. */
export async function slotOf(database: Database, pipeline: string): Promise<ListedSlot | null> {
  const name = await slotName(database, pipeline);
  const health: SlotHealth | null = await slotHealth(database, name);
  if (health === null) return null;
  const { active, retainedBytes, safeBytes, walStatus } = health;
  return { name, status: walStatus ?? "lost", isActive: active, retainedBytes, safeBytes };
}

/**
 * The oldest part of a managed outbox that is past its retention and unread by this pipeline; null when there is none.
 * Only the oldest is checked: a pipeline that blocks a later one usually blocks the oldest too.
 */
export async function retentionWaitsFor(
  database: Database,
  { log, pipeline, schema, table }: KnownPipeline,
  retentionMs: number | null,
): Promise<string | null> {
  if (log !== "managed" || retentionMs === null) return null;
  const name = { schema, table };
  const facts = await readManaged(database, name);
  if (facts === null) return null;
  const oldMs = facts.nowMs - retentionMs;
  const oldest = facts.partitions.find(({ range }) => range !== null && range.toMs <= oldMs);
  if (oldest === undefined) return null;
  const { unread } = await needsOf(database, name, oldest.name, 1);
  return unread.some((it) => it.pipeline === pipeline) ? displayTable(oldest.name) : null;
}

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
