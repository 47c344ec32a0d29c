import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit.ts";
import type { Author } from "../author.ts";
import { type FrozenPlan, NO_PROGRESS, PLAN_COLUMNS, type PlanProgress, planOf } from "./frozen-plan.ts";
import { type Decision, decide } from "./plan-decision.ts";
import { noteOutcomes } from "./plan-outcomes.ts";
import type { PlanSources } from "./plan-sources.ts";
import type { ItemState } from "./plan-states.ts";
import { type DueItem, releaseItems } from "./release-items.ts";

/** How long a plan waits for a runner that gives no sign of life. */
const RUNNER_LEASE_MS = 5_000;

/** What was done in a round. Null: there is nothing for this runner to do, now or ever. */
export interface Round {
  readonly plan: FrozenPlan;
  /** Events that were released. */
  readonly released: number;
  readonly isOver: boolean;
}

/** Candidates that are looked at for what may go: a long line of one key must not hide all others. */
const LOOK_AHEAD = 5_000;
const ROUND_ITEMS_MAX = 1_000;
const ROUND_MS = 15_000;
/** Rows are found by their keys, however few the statistics take them for. */
const BY_ID = { enable_mergejoin: "off", enable_seqscan: "off", jit: "off" };

/**
 * One step of a plan, in one transaction under the lock of its row: notes what has come back, decides, and releases what
 * may go. Everything is decided by what the rows say, so that a successor goes on wherever its predecessor has ended.
 */
export async function playRound(
  database: Database,
  id: string,
  runner: string,
  allowance: number,
  sources: PlanSources,
): Promise<Round | null> {
  const { tables } = database;
  const settings = {
    ...writeSettings(database, "carrying out a plan"),
    statementTimeoutMs: ROUND_MS,
    settings: BY_ID,
  };
  return await transaction(database.pool, settings, async (session) => {
    const held = await holdPlan(session, tables, id, runner);
    if (held === null) return null;
    const { before, plan } = held;
    const noted = await noteOutcomes(session, tables, plan, sources);
    const { failures } = noted;
    const progress = moved(plan.progress, "sent", { done: noted.done, left: noted.left, failed: failures.length });
    if (plan.state !== "running") {
      const written = await write(session, tables, plan, progress, "runner_until = p.runner_until");
      return { plan: written, released: 0, isOver: progress.sent === 0 };
    }
    const [doneNow, failedNow] = [progress.done - before.done, progress.failed - before.failed];
    const decision = decide({ action: plan.action, stage: plan.stage, progress, doneNow, failedNow, failures });
    if (decision.kind !== "go") return await endPlan(session, database, plan, progress, decision);
    const behind = progress.failed === 0 ? 0 : await leaveFollowers(session, tables, plan);
    const room = Math.min(decision.room, allowance, ROUND_ITEMS_MAX);
    const due = room <= 0 ? [] : await dueItems(session, tables, plan, room);
    const released = await releaseItems(session, database, { ...plan, author: authorOf(plan) }, due, sources);
    const now = moved(progress, "waiting", {
      [plan.action === "discard" ? "done" : "sent"]: released,
      left: due.length - released + behind,
    });
    const written = await write(session, tables, plan, now, `stage = '${decision.stage}'`);
    return { plan: written, released: due.length, isOver: false };
  });
}

/** So many that were in one state are in others now. */
function moved(progress: PlanProgress, from: ItemState, to: Partial<PlanProgress>): PlanProgress {
  const next = { ...progress };
  for (const [state, count] of Object.entries(to) as [ItemState, number][]) {
    next[from] -= count;
    next[state] += count;
  }
  return next;
}

interface HeldPlan {
  readonly plan: FrozenPlan;
  /** How far it was when it was started last. */
  readonly before: PlanProgress;
}

/** Whoever is named in the row, or anybody once that one is silent. Also renews the lease. */
async function holdPlan(
  session: Session,
  { replayPlans }: RelayTables,
  id: string,
  runner: string,
): Promise<HeldPlan | null> {
  const [row] = await session.rows(
    `update ${replayPlans} p set runner = $2, runner_until = clock_timestamp() + interval '${RUNNER_LEASE_MS} ms'
     where p.id = $1 and (p.runner = $2
       or (p.state = 'running' and (p.runner is null or p.runner_until < clock_timestamp())))
     returning ${PLAN_COLUMNS}, p.breakdown ->> 'before'`,
    [id, runner],
  );
  if (row === undefined) return null;
  return { plan: planOf(row), before: JSON.parse(row.at(-1) ?? "null") ?? NO_PROGRESS };
}

async function write(
  session: Session,
  { replayPlans }: RelayTables,
  { id }: FrozenPlan,
  progress: PlanProgress,
  assignments: string,
  stopReason: string | null = null,
): Promise<FrozenPlan> {
  const [row] = await session.rows(
    `update ${replayPlans} p set breakdown = p.breakdown || jsonb_build_object('progress', $2::jsonb),
       stop_reason = coalesce($3, p.stop_reason), ${assignments} where p.id = $1 returning ${PLAN_COLUMNS}`,
    [id, JSON.stringify(progress), stopReason],
  );
  return planOf(row ?? []);
}

async function endPlan(
  session: Session,
  database: Database,
  plan: FrozenPlan,
  progress: PlanProgress,
  decision: Exclude<Decision, { kind: "go" }>,
): Promise<Round> {
  const state = decision.kind === "stop" ? "stopped" : "done";
  const why = decision.kind === "stop" ? decision.why : null;
  const ended = `state = '${state}', finished_at = clock_timestamp()`;
  const written = await write(session, database.tables, plan, progress, ended, why);
  const action = decision.kind === "stop" ? "plan-stopped" : "plan-done";
  const author = { ...authorOf(plan), reason: why ?? plan.reason ?? undefined };
  await noteAction(session, database, author, { action, target: plan.id, detail: { progress } });
  return { plan: written, released: 0, isOver: progress.sent === 0 };
}

/** Another runner may have it at once. */
export async function leavePlan(database: Database, id: string, runner: string): Promise<void> {
  const table = database.tables.replayPlans;
  await transaction(database.pool, writeSettings(database, "leaving a plan"), (session) =>
    session.rows(`update ${table} set runner = null, runner_until = null where id = $1 and runner = $2`, [id, runner]),
  );
}

/** Stops a plan that cannot go on, for instance because its table is gone. */
export async function stopPlan(database: Database, id: string, runner: string, why: string): Promise<void> {
  const settings = writeSettings(database, "stopping a plan");
  await transaction(database.pool, settings, async (session) => {
    const held = await holdPlan(session, database.tables, id, runner);
    if (held?.plan.state !== "running") return;
    await endPlan(session, database, held.plan, held.plan.progress, { kind: "stop", why });
  });
}

/** What comes behind an event that failed again would overtake it. */
async function leaveFollowers(session: Session, { replayItems }: RelayTables, { id }: FrozenPlan): Promise<number> {
  const rows = await session.rows(
    `update ${replayItems} w set state = 'left', reason = 'an earlier event of its key failed again',
       changed_at = clock_timestamp()
     where w.plan = $1 and w.state = 'waiting' and w.event_key is not null and (w.pipeline, w.event_key) in (
       select f.pipeline, f.event_key from ${replayItems} f where f.plan = $1 and f.state = 'failed')
     returning 1`,
    [id],
  );
  return rows.length;
}

/** The first of each key whose earlier ones have all come back. */
async function dueItems(
  session: Session,
  { replayItems }: RelayTables,
  { action, id }: FrozenPlan,
  room: number,
): Promise<readonly DueItem[]> {
  const inTurn =
    action === "discard"
      ? "true"
      : `(r.event_key is null or r.rank = 1 and (r.pipeline, r.event_key) not in (
         select s.pipeline, s.event_key from ${replayItems} s
         where s.plan = $1 and s.state = 'sent' and s.event_key is not null))`;
  const rows = await session.rows(
    `with next as materialized (
       select seq, pipeline, source, event_id, event_key, was from ${replayItems}
       where plan = $1 and state = 'waiting' order by seq limit ${LOOK_AHEAD}),
     ranked as (select n.*, row_number() over (partition by pipeline, event_key order by seq) as rank from next n)
     select r.seq, r.pipeline, r.source, r.event_id, r.was::text from ranked r where ${inTurn} order by r.seq limit ${room}`,
    [id],
  );
  return rows.map((row) => ({
    seq: row[0] ?? "",
    pipeline: row[1] ?? "",
    source: row[2] ?? "",
    id: row[3] ?? "",
    was: JSON.parse(row[4] ?? "{}") as Record<string, string>,
  }));
}

function authorOf({ createdBy, reason, startedBy }: FrozenPlan): Author {
  return { by: startedBy ?? createdBy, via: "relay", reason: reason ?? undefined };
}
