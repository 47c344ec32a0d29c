import { isRelayError, reasonOf } from "../core/errors.ts";
import type { Backlog } from "../ports/queue-store.ts";
import { migrationStatus } from "../postgres/migrations/migrate.ts";
import type { Database } from "../postgres/pool.ts";
import { statement } from "../postgres/transaction.ts";
import { type OperationTarget, operationReadSettings } from "./event-source.ts";
import { pipelineBacklog } from "./pipeline-backlog.ts";
import { type KnownPipeline, knownPipelines } from "./pipelines.ts";

/** `broken`: its table or its log cannot be read as it is. */
export const PIPELINE_STATES = ["running", "paused", "broken", "not served"] as const;

interface PipelineStatus extends KnownPipeline {
  readonly state: (typeof PIPELINE_STATES)[number];
  /** Whether a living instance serves it. */
  readonly isServed: boolean;
  readonly ownedLanes: number;
  readonly freeLanes: number;
  /** Null when it could not be counted; `countProblem` says why. */
  readonly pending: number | null;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
  readonly countProblem: string | null;
  /** Failed events that are tried again. */
  readonly retrying: number;
  /** Keys that wait behind a failed event. */
  readonly parkedKeys: number;
  readonly deadLetters: number;
}

interface InstanceStatus {
  readonly id: string;
  readonly name: string;
  readonly joinedAt: string;
  readonly leaseRemainingMs: number;
  readonly pipelines: readonly string[];
  readonly lanes: number;
}

export interface Status {
  readonly relaySchema: string;
  readonly schemaVersion: number;
  readonly pipelines: readonly PipelineStatus[];
  /** Those that live. */
  readonly instances: readonly InstanceStatus[];
  /** What a person should look at, in words; empty when all is well. */
  readonly problems: readonly string[];
}

/** Older than this an event waits too long. */
const LAG_MAX_MS = 60_000;

/** How the relay is, by the database alone: no service has to run for it. */
export async function readStatus(target: OperationTarget): Promise<Status> {
  const { database } = target;
  const known = await knownPipelines(database);
  const { version } = await migrationStatus(database);
  const [instances, figures] = [await livingInstances(database), await laneFigures(database)];
  const pipelines: PipelineStatus[] = [];
  // One after the other: whoever asks can wait, the delivery cannot.
  for (const pipeline of known) {
    const { isBroken, ...counted } = await countOf(target, pipeline);
    const isServed = instances.some((instance) => instance.pipelines.includes(pipeline.pipeline));
    const lively = pipeline.pause !== null ? "paused" : isServed ? "running" : "not served";
    const state = isBroken ? "broken" : lively;
    pipelines.push({ ...pipeline, state, isServed, ...(figures.get(pipeline.pipeline) ?? NOTHING), ...counted });
  }
  const served = new Set(pipelines.filter(({ isServed }) => isServed).map(({ source }) => source));
  const problems = pipelines.flatMap((pipeline) => problemsOf(pipeline, served));
  return { relaySchema: database.relaySchema, schemaVersion: version, pipelines, instances, problems };
}

/** An Open Outbox row that is dead and parks nobody has no hold, and is only found by counting. */
type Counted = Pick<PipelineStatus, "pending" | "isEstimate" | "oldestAgeMs" | "countProblem"> &
  Partial<Pick<PipelineStatus, "deadLetters">> & { readonly isBroken: boolean };

async function countOf(target: OperationTarget, pipeline: KnownPipeline): Promise<Counted> {
  try {
    const { dead, pending, isEstimate, oldestAgeMs }: Backlog = await pipelineBacklog(target, pipeline);
    return { pending, isEstimate, oldestAgeMs, deadLetters: dead, countProblem: null, isBroken: false };
  } catch (error) {
    if (!isRelayError(error) || error.code === "DATABASE_UNREACHABLE") throw error;
    const isBroken = error.code !== "DATABASE_BUSY";
    return { pending: null, isEstimate: false, oldestAgeMs: null, countProblem: reasonOf(error), isBroken };
  }
}

/**
 * What a person has stopped may wait, and so may what goes another way since the settings were changed. Of a log nobody
 * else takes what a reader leaves.
 */
function problemsOf(pipeline: PipelineStatus, servedSources: ReadonlySet<string>): string[] {
  const { countProblem, deadLetters, isServed, oldestAgeMs, pause, pending, source } = pipeline;
  const name = pipeline.pipeline;
  const mayWait = pause !== null || (!isServed && pipeline.log === null && servedSources.has(source));
  const ageMs = oldestAgeMs ?? 0;
  return [
    countProblem === null ? null : `${name} cannot be counted: ${countProblem}`,
    deadLetters > 0 ? `${name} has ${deadLetters} dead letters` : null,
    !mayWait && !isServed && (pending ?? 0) > 0 ? `${name} has events waiting and no living instance` : null,
    !mayWait && ageMs > LAG_MAX_MS ? `${name} is ${Math.round(ageMs / 1_000)} s late` : null,
  ].filter((problem) => problem !== null);
}

async function livingInstances(database: Database): Promise<readonly InstanceStatus[]> {
  const { instances, lanes } = database.tables;
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "listing the instances"),
    `select i.id, i.name, to_char(i.joined_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), to_json(i.pipelines),
       round(extract(epoch from i.alive_until - clock_timestamp()) * 1000),
       (select count(*) from ${lanes} l where l.owner = i.id)
     from ${instances} i where i.alive_until > clock_timestamp() order by i.joined_at, i.id`,
  );
  return rows.map((row) => ({
    id: row[0] ?? "",
    name: row[1] ?? "",
    joinedAt: row[2] ?? "",
    leaseRemainingMs: Number(row[4]),
    pipelines: JSON.parse(row[3] ?? "[]") as readonly string[],
    lanes: Number(row[5]),
  }));
}

type LaneFigures = Pick<PipelineStatus, "ownedLanes" | "freeLanes" | "retrying" | "parkedKeys" | "deadLetters">;

const NOTHING: LaneFigures = { ownedLanes: 0, freeLanes: 0, retrying: 0, parkedKeys: 0, deadLetters: 0 };

/** A lane whose owner lives no longer is free: whoever looks next takes it. */
async function laneFigures(database: Database): Promise<ReadonlyMap<string, LaneFigures>> {
  const { holds, instances, lanes, pipelines } = database.tables;
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "counting lanes and holds"),
    `select p.name, l.owned, l.free, h.retrying, h.parked, h.dead from ${pipelines} p
     cross join lateral (select count(i.id) as owned, count(*) - count(i.id) as free from ${lanes} l
       left join ${instances} i on i.id = l.owner and i.alive_until > clock_timestamp() where l.pipeline = p.name) l
     cross join lateral (select count(*) filter (where state <> 'dead') as retrying,
       count(distinct event_key) filter (where parks and event_key is not null) as parked,
       count(*) filter (where state = 'dead') as dead from ${holds} where pipeline = p.name) h`,
  );
  return new Map(
    rows.map((row) => {
      const [ownedLanes = 0, freeLanes = 0, retrying = 0, parkedKeys = 0, deadLetters = 0] = row.slice(1).map(Number);
      return [row[0] ?? "", { ownedLanes, freeLanes, retrying, parkedKeys, deadLetters }];
    }),
  );
}
