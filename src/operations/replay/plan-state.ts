import { RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import type { RelayTables } from "../../postgres/relay-tables.ts";
import type { Session } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit/audit.ts";
import type { Author } from "../audit/author.ts";
import { type FrozenPlan, isPlanId, PLAN_COLUMNS, planOf } from "./frozen-plan.ts";
import { changedStrata, stratumArrays, stratumJoinSql } from "./plan-strata.ts";

/** After a day, what the plan recorded of its events is probably out of date. */
const STALE_HOURS = 24;
const CHANGE_MS = 30_000;

/** Outcomes count from this point on. */
const BEFORE = `breakdown = breakdown || jsonb_build_object('before', breakdown -> 'progress', 'strata', (
  select coalesce(jsonb_agg(it || '{"passed": 0, "failure": null}' order by place), '[]')
  from jsonb_array_elements(coalesce(breakdown -> 'strata', '[]')) with ordinality as s (it, place)))`;

interface StartOptions {
  /** Exclude the strata that failed before, and continue with the others. */
  readonly skipFailed?: boolean | undefined;
}

/**
 * Starts a plan, or continues one that was paused or stopped: a stopped one from the first stage. A runner picks it up
 * within seconds. Null when there is none. Throws CONFLICT after a concurrent change, or when the plan is stale.
 */
export async function startPlan(
  database: Database,
  id: string,
  author: Author,
  { skipFailed = false }: StartOptions = {},
): Promise<FrozenPlan | null> {
  const prepare = skipFailed ? leaveFailed : undefined;
  return await changePlan(database, id, author, "plan-run", prepare, (plan, isStale) => {
    if (plan.state === "running") {
      throw unfit(plan, `is running already, started by ${plan.startedBy} at ${plan.startedAt}`);
    }
    if (plan.state === "done" || plan.state === "cancelled")
      throw unfit(plan, `is ${plan.state}, and cannot run again`);
    if (plan.state === "planned" && isStale) {
      throw unfit(plan, `was created at ${plan.createdAt}, more than ${STALE_HOURS} hours ago: create a new plan`);
    }
    const restart = plan.state === "paused" ? "" : `, stage = 'first', started_at = clock_timestamp(), ${BEFORE}`;
    return `state = 'running', started_by = $2, stop_reason = null, finished_at = null${restart}`;
  });
}

/** Events in flight are finished; no more are sent. */
export async function pausePlan(database: Database, id: string, author: Author): Promise<FrozenPlan | null> {
  return await changePlan(database, id, author, "plan-pause", undefined, (plan) => {
    if (plan.state === "running") return "state = 'paused'";
    throw unfit(plan, `is ${plan.state}: only a running plan can be paused`);
  });
}

/** Permanent. Events in flight are finished; the rest stays as it is. */
export async function cancelPlan(database: Database, id: string, author: Author): Promise<FrozenPlan | null> {
  return await changePlan(database, id, author, "plan-cancel", undefined, (plan) => {
    if (plan.state !== "done" && plan.state !== "cancelled")
      return "state = 'cancelled', finished_at = clock_timestamp()";
    throw unfit(plan, `is ${plan.state} already`);
  });
}

/** Under the lock of the plan's row: of two concurrent changes, the second sees the result of the first. */
async function changePlan(
  database: Database,
  id: string,
  author: Author,
  action: "plan-run" | "plan-pause" | "plan-cancel",
  prepare: ((session: Session, tables: RelayTables, plan: FrozenPlan) => Promise<void>) | undefined,
  assign: (plan: FrozenPlan, isStale: boolean) => string,
): Promise<FrozenPlan | null> {
  if (!isPlanId(id)) return null;
  const table = database.tables.replayPlans;
  return await transaction(database.pool, changeSettings(database), async (session) => {
    const [row] = await session.rows(
      `select ${PLAN_COLUMNS}, p.created_at < clock_timestamp() - interval '${STALE_HOURS} hours'
       from ${table} p where p.id = $1 for update`,
      [id],
    );
    if (row === undefined) return null;
    const assignments = assign(planOf(row), row.at(-1) === "t");
    await prepare?.(session, database.tables, planOf(row));
    const values = assignments.includes("$2") ? [id, author.by] : [id];
    const [changed] = await session.rows(
      `update ${table} p set ${assignments} where p.id = $1 returning ${PLAN_COLUMNS}`,
      values,
    );
    const plan = planOf(changed ?? row);
    await noteAction(session, database, author, { action, target: id, detail: { progress: plan.progress } });
    return plan;
  });
}

/** Permanently skips the waiting events of failed strata. */
async function leaveFailed(session: Session, tables: RelayTables, plan: FrozenPlan): Promise<void> {
  const failed = plan.strata.flatMap(({ failure }, place) => (failure === null ? [] : [place]));
  if (failed.length === 0) throw unfit(plan, "has no failed part: run it without skipping");
  const rows = await session.rows(
    `with left_alone as (
       update ${tables.replayItems} i set state = 'left', changed_at = clock_timestamp(),
         reason = 'others with its destination, error and type failed again, and the plan went on without them'
       from (select w.seq, coalesce(k.place, $5) - 1 as stratum from ${tables.replayItems} w ${stratumJoinSql("w", "k", 2)}
         where w.plan = $1 and w.state = 'waiting') w
       where i.plan = $1 and i.seq = w.seq and w.stratum = any($6::int[]) returning w.stratum)
     select stratum, count(*) from left_alone group by 1`,
    [plan.id, ...stratumArrays(plan.strata), plan.strata.length, failed],
  );
  const changes = rows.map(([stratum, count]) => {
    return { stratum: Number(stratum), from: "waiting", to: "left", count: Number(count) } as const;
  });
  const count = changes.reduce((sum, it) => sum + it.count, 0);
  const progress = { ...plan.progress, waiting: plan.progress.waiting - count, left: plan.progress.left + count };
  const strata = changedStrata(plan.strata, changes);
  await session.rows(`update ${tables.replayPlans} set breakdown = breakdown || $2::jsonb where id = $1`, [
    plan.id,
    JSON.stringify({ progress, strata }),
  ]);
}

/** Half a million events may have to be marked as skipped. */
function changeSettings(database: Database) {
  return { ...writeSettings(database, "changing a plan"), statementTimeoutMs: CHANGE_MS };
}

function unfit({ id }: FrozenPlan, what: string): RelayError {
  return new RelayError("CONFLICT", `Plan ${id} ${what}`);
}
