import { RelayError } from "../../core/errors.ts";
import type { Database } from "../../postgres/pool.ts";
import type { Row } from "../../postgres/session.ts";
import { transaction } from "../../postgres/transaction.ts";
import { LIST_ROWS_MAX } from "../events/event-list.ts";
import { operationReadSettings } from "../events/event-source.ts";
import { isoSql } from "../events/event-time.ts";
import { onlyStratum, type PlanStratum } from "./plan-strata.ts";

/** What a plan does with its events. */
export type PlanAction = "replay" | "discard";
/** What kind of events a plan contains. */
export type PlanSubject = "dead" | "delivered";
/** How much of a plan may be sent. */
export type PlanStage = "first" | "ten" | "rest";

/** Events of a plan by state. */
export type PlanProgress = Readonly<Record<ItemState, number>>;

/** What a plan contains, as it was found. */
export interface PlanBreakdown {
  readonly keys: number;
  readonly byType: Readonly<Record<string, number>>;
  readonly bySource: Readonly<Record<string, number>>;
  readonly byError: Readonly<Record<string, number>>;
}

/** A stored list of events, what to do with exactly these, and the progress. */
export interface FrozenPlan extends PlanBreakdown {
  readonly id: string;
  readonly action: PlanAction;
  readonly subject: PlanSubject;
  readonly filter: string;
  readonly state: PlanState;
  readonly stage: PlanStage;
  readonly ratePerSecond: number | null;
  /** A JSON merge patch for each payload, as its author wrote it; null without one. */
  readonly patch: string | null;
  readonly count: number;
  readonly warnings: readonly string[];
  readonly progress: PlanProgress;
  /** By destination, error and type, largest first. A replay starts with one event of each. */
  readonly strata: readonly PlanStratum[];
  readonly createdAt: string;
  readonly createdBy: string;
  readonly reason: string | null;
  readonly startedAt: string | null;
  readonly startedBy: string | null;
  readonly finishedAt: string | null;
  readonly stopReason: string | null;
  /** Whether a process is working on it. */
  readonly isServed: boolean;
}

/** One event of a plan. */
export interface PlanItem {
  readonly seq: string;
  readonly pipeline: string;
  readonly source: string;
  readonly id: string;
  readonly type: string;
  readonly key: string | null;
  readonly state: ItemState;
  readonly reason: string | null;
  readonly changedAt: string | null;
}

/** The progress of a new plan. */
export const NO_PROGRESS: PlanProgress = { waiting: 0, sent: 0, done: 0, failed: 0, left: 0 };

/** In the order in which `planOf` reads them. */
export const PLAN_COLUMNS = `p.id, p.action, p.subject, p.filter, p.state, p.stage, p.rate_per_second, p.items,
  p.breakdown::text, p.warnings::text, ${isoSql("p.created_at")}, p.created_by, p.reason, ${isoSql("p.started_at")},
  p.started_by, ${isoSql("p.finished_at")}, p.stop_reason, p.state = 'running' and p.runner_until > clock_timestamp(),
  p.patch #>> '{}'`;

interface StoredBreakdown extends PlanBreakdown {
  readonly progress?: PlanProgress;
  readonly strata?: readonly PlanStratum[];
  /** The progress at its last start from the first stage. */
  readonly before?: PlanProgress;
}

/** A plan from its row. */
export function planOf(row: Row): FrozenPlan {
  const stored = JSON.parse(row[8] ?? "{}") as StoredBreakdown;
  const { before: _, progress = NO_PROGRESS, strata = [], ...breakdown } = stored;
  return {
    id: row[0] ?? "",
    action: row[1] as PlanAction,
    subject: row[2] as PlanSubject,
    filter: row[3] ?? "",
    state: row[4] as PlanState,
    stage: row[5] as PlanStage,
    ratePerSecond: row[6] == null ? null : Number(row[6]),
    count: Number(row[7]),
    ...breakdown,
    warnings: JSON.parse(row[9] ?? "[]") as string[],
    progress,
    strata: strata.length === 0 ? [onlyStratum(Number(row[7]), progress)] : strata,
    createdAt: row[10] ?? "",
    createdBy: row[11] ?? "",
    reason: row[12] ?? null,
    startedAt: row[13] ?? null,
    startedBy: row[14] ?? null,
    finishedAt: row[15] ?? null,
    stopReason: row[16] ?? null,
    isServed: row[17] === "t",
    patch: row[18] ?? null,
  };
}

/** Null when there is no such plan; an invalid id finds none. */
export async function showPlan(database: Database, id: string): Promise<FrozenPlan | null> {
  if (!isPlanId(id)) return null;
  const settings = operationReadSettings(database, "reading a plan");
  const [row] = await transaction(database.pool, settings, (session) =>
    session.rows(`select ${PLAN_COLUMNS} from ${database.tables.replayPlans} p where p.id = $1`, [id]),
  );
  return row === undefined ? null : planOf(row);
}

/** Whether a text is the id of a plan. */
export function isPlanId(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

interface Page {
  readonly limit?: number;
  readonly cursor?: string | undefined;
}

/** Selects plans; absent fields match all. */
export interface PlanChoice {
  readonly state?: PlanState | undefined;
  readonly action?: PlanAction | undefined;
  /** A part of the id, the filter, the reason or the author, ignoring case. */
  readonly contains?: string | undefined;
}

const SEARCHED = "lower(concat_ws(' ', p.id, p.filter, p.reason, p.created_by))";

/** Plans, newest first. */
export async function listPlans(
  database: Database,
  { limit = 50, cursor, state, action, contains }: Page & PlanChoice = {},
): Promise<{ readonly plans: readonly FrozenPlan[]; readonly cursor: string | null }> {
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  if (cursor !== undefined && !isPlanId(cursor)) throw badCursor(cursor);
  const table = database.tables.replayPlans;
  const settings = operationReadSettings(database, "listing plans");
  const found = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select ${PLAN_COLUMNS} from ${table} p
       where ($1::uuid is null or (p.created_at, p.id) < (select created_at, id from ${table} where id = $1))
         and ($2::text is null or p.state = $2) and ($3::text is null or p.action = $3)
         and ($4::text is null or position(lower($4) in ${SEARCHED}) > 0)
       order by p.created_at desc, p.id desc limit ${rows + 1}`,
      [cursor ?? null, state ?? null, action ?? null, contains?.trim() || null],
    ),
  );
  const plans = found.slice(0, rows).map(planOf);
  return { plans, cursor: found.length > rows ? (plans.at(-1)?.id ?? null) : null };
}

/** Events of a plan, in the order of their replay. */
export async function listPlanItems(
  database: Database,
  id: string,
  { limit = 50, cursor, state }: Page & { readonly state?: ItemState | undefined } = {},
): Promise<{ readonly items: readonly PlanItem[]; readonly cursor: string | null }> {
  const rows = Math.max(1, Math.min(limit, LIST_ROWS_MAX));
  if (cursor !== undefined && !/^\d{1,18}$/.test(cursor)) throw badCursor(cursor);
  const settings = operationReadSettings(database, "listing the events of a plan");
  const found = await transaction(database.pool, settings, (session) =>
    session.rows(
      `select seq, pipeline, source, event_id, event_type, event_key, state, reason, ${isoSql("changed_at")}
       from ${database.tables.replayItems} where plan = $1 and seq > $2::bigint and ($3::text is null or state = $3)
       order by seq limit ${rows + 1}`,
      [id, cursor ?? "0", state ?? null],
    ),
  );
  const items = found.slice(0, rows).map((row) => ({
    seq: row[0] ?? "",
    pipeline: row[1] ?? "",
    source: row[2] ?? "",
    id: row[3] ?? "",
    type: row[4] ?? "",
    key: row[5] ?? null,
    state: row[6] as ItemState,
    reason: row[7] ?? null,
    changedAt: row[8] ?? null,
  }));
  return { items, cursor: found.length > rows ? (items.at(-1)?.seq ?? null) : null };
}

function badCursor(cursor: string): RelayError {
  return new RelayError("CONFIG_INVALID", `${JSON.stringify(cursor.slice(0, 100))} is not a cursor of this list`);
}

/** All states of a plan. */
export const PLAN_STATES = ["planned", "running", "paused", "stopped", "done", "cancelled"] as const;

/** `sent`: released, and not yet delivered. `left`: skipped, because it had changed. */
export const ITEM_STATES = ["waiting", "sent", "done", "failed", "left"] as const;

/** One of the states of a plan. */
type PlanState = (typeof PLAN_STATES)[number];
/** One of the states of an event in a plan. */
export type ItemState = (typeof ITEM_STATES)[number];
