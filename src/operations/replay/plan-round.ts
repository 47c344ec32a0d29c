import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { readPatch } from "../dead-letters/merge-patch.ts";
import { dueItems, leaveFollowers } from "./due-items.ts";
import { type FrozenPlan, NO_PROGRESS, PLAN_COLUMNS, type PlanProgress, planOf } from "./frozen-plan.ts";
import { type Decision, decide, isDecisive, stageAfter } from "./plan-decision.ts";
import { noteOutcomes } from "./plan-outcomes.ts";
import type { PlanSources } from "./plan-sources.ts";
import { changedStrata } from "./plan-strata.ts";
import { releaseItems } from "./release-items.ts";

/** How long a plan waits for a runner that does not renew its lease. */
const RUNNER_LEASE_MS = 5_000;

/** The result of a round. Null: this runner has no work on the plan. */
export interface Round {
  readonly plan: FrozenPlan;
  /** Number of released events. */
  readonly released: number;
  readonly isOver: boolean;
}

const ROUND_ITEMS_MAX = 1_000;
const ROUND_MS = 15_000;
/** Forces lookups by key, however few rows the statistics predict. */
const BY_ID = { enable_mergejoin: "off", enable_seqscan: "off", jit: "off", work_mem: "64MB" };

/**
 * One step of a plan, in one transaction under the lock of its row: records outcomes, decides, and releases what is
 * due. All decisions depend on stored rows only, so that another runner can continue at any point.
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
    const { before } = held;
    const noted = await noteOutcomes(session, tables, held.plan, sources);
    const plan = withOutcomes(held.plan, noted);
    const { progress } = plan;
    if (plan.state !== "running") {
      const written = await write(session, tables, plan, "runner_until = p.runner_until");
      return { plan: written, released: 0, isOver: progress.sent === 0 };
    }
    const failures = noted.flatMap(({ failure }) => failure ?? []);
    const decision = decide({ ...plan, failedNow: progress.failed - before.failed, failures });
    if (decision.kind !== "go") return await endPlan(session, database, plan, decision);
    return await sendMore(session, database, plan, { ...decision, allowance, hasNews: noted.length > 0 }, sources);
  });
}

async function sendMore(
  session: Session,
  database: Database,
  plan: FrozenPlan,
  decision: Extract<Decision, { kind: "go" }> & { readonly allowance: number; readonly hasNews: boolean },
  sources: PlanSources,
): Promise<Round> {
  const { tables } = database;
  // Before the last stage all waiting events are considered: not again until a sent one has settled.
  const isUnchanged =
    decision.stage !== "rest" && !decision.hasNews && plan.progress.sent > 0 && plan.ratePerSecond === null;
  const behind = plan.progress.failed === 0 ? [] : await leaveFollowers(session, tables, plan);
  const room = Math.min(decision.room, decision.allowance, ROUND_ITEMS_MAX);
  const due = room <= 0 || isUnchanged ? [] : await dueItems(session, tables, plan, { ...decision, room });
  const patch = plan.patch === null ? null : readPatch(plan.patch);
  const released = await releaseItems(session, database, { ...plan, author: authorOf(plan), patch }, due, sources);
  const gone = plan.action === "discard" ? "done" : "sent";
  const now = moved(plan, [
    ...behind.map((it) => ({ ...it, from: "waiting", to: "left" }) as const),
    ...due.map((it) => ({ stratum: it.stratum, from: "waiting", to: released.has(it) ? gone : "left" }) as const),
  ]);
  // The remaining strata wait behind events of others: those go first, and each stratum still starts with one event.
  const isBlocked = room > 0 && !isUnchanged && due.length === 0 && now.progress.sent === 0;
  const stage = isBlocked ? stageAfter(decision.stage) : decision.stage;
  const written = await write(session, tables, now, `stage = '${stage}'`);
  return { plan: written, released: due.length, isOver: false };
}

/** Marks the stratum whose failure stops the plan, also when others were recorded first. */
function withOutcomes(plan: FrozenPlan, noted: Awaited<ReturnType<typeof noteOutcomes>>): FrozenPlan {
  const changes = noted.map(({ failure, state, stratum }) => {
    const isMarked = failure !== null && isDecisive(failure, plan.stage, plan.strata);
    return { stratum, from: "sent", to: state, failure: isMarked ? failure.reason : null } as const;
  });
  return moved(plan, changes);
}

/** Moves counts between states, in total and per stratum. */
function moved(plan: FrozenPlan, changes: Parameters<typeof changedStrata>[1]): FrozenPlan {
  const progress = { ...plan.progress };
  for (const { count = 1, from, to } of changes) {
    progress[from] -= count;
    progress[to] += count;
  }
  return { ...plan, progress, strata: changedStrata(plan.strata, changes) };
}

interface HeldPlan {
  readonly plan: FrozenPlan;
  /** Its progress at the last start. */
  readonly before: PlanProgress;
}

/**
 * Takes the plan for the runner in its row, or for any runner once that one's lease has expired. Also renews the lease.
 */
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
  { id, progress, strata }: FrozenPlan,
  assignments: string,
  stopReason: string | null = null,
): Promise<FrozenPlan> {
  const [row] = await session.rows(
    `update ${replayPlans} p set breakdown = p.breakdown || $2::jsonb,
       stop_reason = coalesce($3, p.stop_reason), ${assignments} where p.id = $1 returning ${PLAN_COLUMNS}`,
    [id, JSON.stringify({ progress, strata }), stopReason],
  );
  return planOf(row ?? []);
}

async function endPlan(
  session: Session,
  database: Database,
  plan: FrozenPlan,
  decision: Exclude<Decision, { kind: "go" }>,
): Promise<Round> {
  const state = decision.kind === "stop" ? "stopped" : "done";
  const why = decision.kind === "stop" ? decision.why : null;
  const ended = `state = '${state}', finished_at = clock_timestamp()`;
  const { progress } = plan;
  const written = await write(session, database.tables, plan, ended, why);
  const action = decision.kind === "stop" ? "plan-stopped" : "plan-done";
  const author = { ...authorOf(plan), reason: why ?? plan.reason ?? undefined };
  await noteAction(session, database, author, { action, target: plan.id, detail: { progress } });
  return { plan: written, released: 0, isOver: progress.sent === 0 };
}

/** Releases the lease, so that another runner can continue at once. */
export async function leavePlan(database: Database, id: string, runner: string): Promise<void> {
  const table = database.tables.replayPlans;
  await transaction(database.pool, writeSettings(database, "leaving a plan"), (session) =>
    session.rows(`update ${table} set runner = null, runner_until = null where id = $1 and runner = $2`, [id, runner]),
  );
}

/** Stops a plan that cannot continue, for example because its table is gone. */
export async function stopPlan(database: Database, id: string, runner: string, why: string): Promise<void> {
  const settings = writeSettings(database, "stopping a plan");
  await transaction(database.pool, settings, async (session) => {
    const held = await holdPlan(session, database.tables, id, runner);
    if (held?.plan.state !== "running") return;
    await endPlan(session, database, held.plan, { kind: "stop", why });
  });
}

function authorOf({ createdBy, reason, startedBy }: FrozenPlan): Author {
  return { by: startedBy ?? createdBy, via: "relay", reason: reason ?? undefined };
}
