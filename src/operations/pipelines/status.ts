import {
  consoleLink,
  endsOf,
  type Grade,
  gradeOf,
  type HealthCause,
  inOrder,
  pipelineLink,
  runbookLink,
} from "../../core/health-cause.ts";
import { plural } from "../../core/plural.ts";
import { migrationStatus } from "../../postgres/migrations/migrate.ts";
import type { Database } from "../../postgres/pool.ts";
import { glance, statement } from "../../postgres/transaction.ts";
import { type OperationTarget, operationReadSettings } from "../events/event-source.ts";
import { quotedValue } from "../filter/filter-words.ts";
import { holdFigures } from "../overview/relay-figures.ts";
import { type Counted, countPipelines, type UnroutedEvents } from "./pipeline-backlog.ts";
import { type PipelineFacts, pipelineCauses } from "./pipeline-causes.ts";
import { type KnownPipeline, knownPipelines } from "./pipelines.ts";

/**
 * `broken`: its table or log cannot be read. `no longer configured`: its service runs with other settings, and no
 * instance serves it.
 */
export const PIPELINE_STATES = ["running", "paused", "broken", "not served", "no longer configured"] as const;

interface PipelineStatus extends KnownPipeline {
  readonly state: (typeof PIPELINE_STATES)[number];
  /** Whether a live instance serves it. */
  readonly isServed: boolean;
  readonly ownedLanes: number;
  readonly freeLanes: number;
  /** Null when it could not be counted; `countProblem` says why. */
  readonly pending: number | null;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
  /** Events that wait behind a dead letter of their key; null when they could not be counted. */
  readonly behindDeadLetters: number | null;
  readonly countProblem: string | null;
  /** Failed events that are retried. */
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

/** Pipelines, lanes and instances at one moment. */
export interface Status {
  readonly relaySchema: string;
  readonly schemaVersion: number;
  readonly pipelines: readonly PipelineStatus[];
  /** Waiting events that no pipeline reads, by table. */
  readonly unrouted: readonly UnroutedEvents[];
  /** Live instances. */
  readonly instances: readonly InstanceStatus[];
  /** Grade of the worst cause. */
  readonly grade: Grade;
  /** Why the relay is not healthy, as far as the database shows, worst first. */
  readonly causes: readonly HealthCause[];
  /** What an operator should check, in words; empty for a healthy relay. */
  readonly problems: readonly string[];
}

/** The state of the relay from the database alone; needs no running service. */
export async function readStatus(target: OperationTarget): Promise<Status> {
  const { database } = target;
  const known = await knownPipelines(database);
  const { version } = await migrationStatus(database);
  const [instances, lanes, holds] = [
    await livingInstances(database),
    await laneFigures(database),
    await holdFigures(database),
  ];
  const { pipelines: counts, unrouted } = await countPipelines(target, known);
  const [served, retired] = [servedSources(known, instances), await retiredPipelines(database)];
  const pipelines = known.map((pipeline): PipelineStatus => {
    const { isBroken, ...counted } = figuresOf(counts.get(pipeline.pipeline)!);
    const isServed = instances.some((instance) => instance.pipelines.includes(pipeline.pipeline));
    const isOld = retired.has(pipeline.pipeline) && isLeftBehind(pipeline, served);
    const unserved = isOld ? "no longer configured" : "not served";
    const lively = pipeline.pause !== null ? "paused" : isServed ? "running" : unserved;
    const state = isBroken && (isServed || unserved === "not served") ? "broken" : lively;
    const { dead: deadLetters = 0, parkedKeys = 0, retrying = 0 } = holds.get(pipeline.pipeline) ?? {};
    const figures = { ...(lanes.get(pipeline.pipeline) ?? NO_LANES), retrying, parkedKeys, deadLetters };
    return { ...pipeline, state, isServed, ...figures, ...counted };
  });
  const untaken = unrouted.map((it) => ({ source: it.source, what: `${it.source} has ${unroutedText(it)}` }));
  const problems = [...pipelines.flatMap((pipeline) => problemsOf(pipeline)), ...untaken.map(({ what }) => what)];
  const causes = statusCauses(
    pipelines.map((pipeline) => {
      const { deadKeys = 0, deadSince = null, parkedSince = null } = holds.get(pipeline.pipeline) ?? {};
      return { ...pipeline, parkedKeys: deadKeys, deadSince, parkedSince };
    }),
    untaken,
  );
  const standing = { grade: gradeOf(causes), causes, problems };
  return { relaySchema: database.relaySchema, schemaVersion: version, pipelines, unrouted, instances, ...standing };
}

/** A dead Open Outbox row that parks no key has no hold: only counting finds it. */
type Figures = Pick<PipelineStatus, "pending" | "isEstimate" | "oldestAgeMs" | "behindDeadLetters" | "countProblem"> &
  Partial<Pick<PipelineStatus, "deadLetters">> & { readonly isBroken: boolean };

function figuresOf(counted: Counted): Figures {
  if ("problem" in counted) {
    const { isBroken, problem: countProblem } = counted;
    return {
      ...{ pending: null, isEstimate: false, oldestAgeMs: null, behindDeadLetters: null },
      ...{ countProblem, isBroken },
    };
  }
  const { behindDead, dead, isEstimate, oldestAgeMs, pending } = counted.backlog;
  return {
    ...{ pending, isEstimate, oldestAgeMs, behindDeadLetters: behindDead, deadLetters: dead },
    ...{ countProblem: null, isBroken: false },
  };
}

function unroutedText({ events, isEstimate }: UnroutedEvents): string {
  return `${isEstimate ? "about " : ""}${plural(events, "event")} that no route matches`;
}

/** Pipelines whose service runs without serving them. A stopped service is not retired: its events wait for it. */
async function retiredPipelines({ errorContext, pool, tables, timeouts }: Database): Promise<ReadonlySet<string>> {
  const rows = await glance(
    pool,
    errorContext("looking for pipelines that are left behind"),
    timeouts.statementMs,
    `select p.name from ${tables.pipelines} p where exists (select from ${tables.instances} i
       where i.alive_until > clock_timestamp()
         and coalesce(i.service, p.service) is not distinct from coalesce(p.service, i.service))
     and not exists (select from ${tables.instances} i where i.alive_until > clock_timestamp() and p.name = any(i.pipelines))`,
  );
  return new Set(rows.map(([name]) => name ?? ""));
}

/** The sources that live instances read, with and without subscribers. */
function servedSources(known: readonly KnownPipeline[], instances: readonly InstanceStatus[]): ReadonlySet<string> {
  const served = known.filter(({ pipeline }) => instances.some(({ pipelines }) => pipelines.includes(pipeline)));
  return new Set(served.flatMap(({ source, subscriber }) => [source, ...(subscriber === null ? [] : [`${source}@`])]));
}

/**
 * Events in a queue are read by other pipelines after a change of the settings. Events of a log belong to their reader,
 * so that it stays late, unless subscribers have replaced the single reader of a log.
 */
function isLeftBehind({ log, source, subscriber }: KnownPipeline, served: ReadonlySet<string>): boolean {
  return log === null ? served.has(source) : subscriber === null && served.has(`${source}@`);
}

const FORGET = ": start one, or `outbox-relay pipeline forget` it where it is no longer needed";

/** A paused pipeline may be late, and so may one that is no longer configured. */
function problemsOf(pipeline: PipelineStatus): string[] {
  const { behindDeadLetters, countProblem, deadLetters, isServed, log, oldestAgeMs, pause, pending, state } = pipeline;
  const name = pipeline.pipeline;
  const isOld = state === "no longer configured";
  const mayWait = pause !== null || isOld;
  const ageMs = oldestAgeMs ?? 0;
  return [
    countProblem === null || isOld ? null : `${name} cannot be counted: ${countProblem}`,
    deadLetters > 0
      ? `${name} has ${plural(deadLetters, "dead letter")}${behindText(deadLetters, behindDeadLetters)}`
      : null,
    !mayWait && !isServed && (pending ?? 0) > 0
      ? `${name} has events waiting and no live instance${log === null ? "" : FORGET}`
      : null,
    !mayWait && ageMs > LAG_MAX_MS ? `${name} is ${Math.round(ageMs / 1_000)} s late` : null,
  ].filter((problem) => problem !== null);
}

function behindText(deadLetters: number, events: number | null): string {
  if (events === null || events === 0) return "";
  return `, and ${plural(events, "event")} ${events === 1 ? "waits" : "wait"} behind ${deadLetters === 1 ? "it" : "them"}`;
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

type LaneFigures = Pick<PipelineStatus, "ownedLanes" | "freeLanes">;

const NO_LANES: LaneFigures = { ownedLanes: 0, freeLanes: 0 };

/** A lane whose owner is dead counts as free: the next instance acquires it. */
async function laneFigures(database: Database): Promise<ReadonlyMap<string, LaneFigures>> {
  const { instances, lanes } = database.tables;
  const rows = await statement(
    database.pool,
    operationReadSettings(database, "counting lanes"),
    `select l.pipeline, count(i.id), count(*) - count(i.id) from ${lanes} l
     left join ${instances} i on i.id = l.owner and i.alive_until > clock_timestamp() group by 1`,
  );
  return new Map(rows.map((row) => [row[0] ?? "", { ownedLanes: Number(row[1]), freeLanes: Number(row[2]) }]));
}

interface StatusFacts extends PipelineFacts {
  readonly isServed: boolean;
  readonly pending: number | null;
  readonly oldestAgeMs: number | null;
  /** Why it could not be counted; null when it was. */
  readonly countProblem: string | null;
}

/** An older event is late. */
const LAG_MAX_MS = 60_000;

/** Why the relay is not healthy, as far as the database shows. A paused pipeline may be late. */
function statusCauses(
  pipelines: readonly StatusFacts[],
  unrouted: readonly { readonly source: string; readonly what: string }[],
): readonly HealthCause[] {
  return inOrder([...pipelines.flatMap(waitingCauses), ...pipelineCauses(pipelines), ...unrouted.map(unroutedCause)]);
}

function unroutedCause({ source, what }: { readonly source: string; readonly what: string }): HealthCause {
  return {
    ...{ code: "types-untaken", grade: "attention", pipeline: null, source, destination: null, what, since: null },
    fix: "Add a route for them, or start the relay that handles them.",
    link: consoleLink("/events", { q: `state:unrouted source:${quotedValue(source)}` }),
    runbook: runbookLink("types-untaken"),
  };
}

function waitingCauses({ countProblem, isServed, oldestAgeMs, pause, pending, pipeline }: StatusFacts): HealthCause[] {
  const about = { grade: "degraded", ...endsOf(pipeline), fix: null, since: null } as const;
  const link = pipelineLink(pipeline);
  const ageMs = oldestAgeMs ?? 0;
  const causes: HealthCause[] = [];
  if (countProblem !== null) {
    const what = `${pipeline} cannot be counted: ${countProblem}`;
    causes.push({ ...about, code: "count-failed", what, link, runbook: runbookLink("source-broken") });
  }
  if (pause !== null) return causes;
  if (!isServed && (pending ?? 0) > 0) {
    const what = `${pipeline} has events waiting and no live instance`;
    causes.push({ ...about, code: "pipeline-unserved", what, link, runbook: runbookLink("relay-absent") });
  }
  if (ageMs > LAG_MAX_MS) {
    const what = `${pipeline} is ${Math.round(ageMs / 1_000)} s late`;
    causes.push({ ...about, code: "pipeline-late", what, link });
  }
  return causes;
}
