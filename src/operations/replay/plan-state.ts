import { RelayError } from "../../core/errors.ts";
import { writeSettings } from "../../postgres/lanes.ts";
import type { Database } from "../../postgres/pool.ts";
import { transaction } from "../../postgres/transaction.ts";
import { noteAction } from "../audit.ts";
import type { Author } from "../author.ts";
import { type FrozenPlan, isPlanId, PLAN_COLUMNS, planOf } from "./frozen-plan.ts";

/** The world moves on: what was true of the events when they were looked at is hardly so a day later. */
const STALE_HOURS = 24;

/** What comes of it from now on is counted from here. */
const BEFORE = "breakdown = breakdown || jsonb_build_object('before', breakdown -> 'progress')";

/**
 * Lets a plan begin, or go on where it was paused or has stopped: then from the first stage. Whoever runs plans takes it
 * up within seconds. Null where there is none. Throws CONFLICT where somebody was faster, or the plan is stale.
 */
export async function startPlan(database: Database, id: string, author: Author): Promise<FrozenPlan | null> {
  return await changePlan(database, id, author, "plan-run", (plan, isStale) => {
    if (plan.state === "running") {
      throw unfit(plan, `is running already, started by ${plan.startedBy} at ${plan.startedAt}`);
    }
    if (plan.state === "done" || plan.state === "cancelled")
      throw unfit(plan, `is ${plan.state}, and is not run again`);
    if (plan.state === "planned" && isStale) {
      throw unfit(plan, `was made at ${plan.createdAt}, more than ${STALE_HOURS} hours ago: plan anew`);
    }
    const anew = plan.state === "paused" ? "" : `, stage = 'first', started_at = clock_timestamp(), ${BEFORE}`;
    return `state = 'running', started_by = $2, stop_reason = null, finished_at = null${anew}`;
  });
}

/** What is on its way goes on; nothing more is sent. */
export async function pausePlan(database: Database, id: string, author: Author): Promise<FrozenPlan | null> {
  return await changePlan(database, id, author, "plan-pause", (plan) => {
    if (plan.state === "running") return "state = 'paused'";
    throw unfit(plan, `is ${plan.state}: only one that runs can be paused`);
  });
}

/** For good. What is on its way goes on, the rest stays as it is. */
export async function cancelPlan(database: Database, id: string, author: Author): Promise<FrozenPlan | null> {
  return await changePlan(database, id, author, "plan-cancel", (plan) => {
    if (plan.state !== "done" && plan.state !== "cancelled")
      return "state = 'cancelled', finished_at = clock_timestamp()";
    throw unfit(plan, `is ${plan.state} already`);
  });
}

/** Under the lock of the plan's row: of two people who act at once, the second sees what the first did. */
async function changePlan(
  database: Database,
  id: string,
  author: Author,
  action: "plan-run" | "plan-pause" | "plan-cancel",
  assign: (plan: FrozenPlan, isStale: boolean) => string,
): Promise<FrozenPlan | null> {
  if (!isPlanId(id)) return null;
  const table = database.tables.replayPlans;
  return await transaction(database.pool, writeSettings(database, "changing a plan"), async (session) => {
    const [row] = await session.rows(
      `select ${PLAN_COLUMNS}, p.created_at < clock_timestamp() - interval '${STALE_HOURS} hours'
       from ${table} p where p.id = $1 for update`,
      [id],
    );
    if (row === undefined) return null;
    const assignments = assign(planOf(row), row.at(-1) === "t");
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

function unfit({ id }: FrozenPlan, what: string): RelayError {
  return new RelayError("CONFLICT", `Plan ${id} ${what}`);
}
