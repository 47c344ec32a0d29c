import { setTimeout as sleep } from "node:timers/promises";
import { isRelayError, reasonOf } from "../../core/errors.ts";
import { quoteArray } from "../../postgres/identifiers.ts";
import type { Database } from "../../postgres/pool.ts";
import { glance } from "../../postgres/transaction.ts";
import type { OperationTarget } from "../events/event-source.ts";
import type { FrozenPlan } from "./frozen-plan.ts";
import { leavePlan, playRound, type Round, stopPlan } from "./plan-round.ts";
import { planSources } from "./plan-sources.ts";

interface RunnerOptions {
  /** Id of this runner in the plan's row: no other runner works on it meanwhile. */
  readonly runner: string;
  readonly signal: AbortSignal;
  readonly onProgress?: ((plan: FrozenPlan) => void) | undefined;
}

/** Between rounds, so that the relays can send what was released. */
const ROUND_PAUSE_MS = 200;
const ERROR_PAUSE_MS = 1_000;
/** How long events in flight are watched after the end of their plan. */
const WATCH_MS = 60_000;

/**
 * Works on a plan until it is done, stopped, paused or cancelled, including its events in flight. Returns at once when
 * another runner has it. Retries when the database is busy or unreachable; other errors stop the plan.
 */
export async function runPlan(target: OperationTarget, id: string, options: RunnerOptions): Promise<void> {
  try {
    await playToTheEnd(target, id, options);
  } finally {
    await leavePlan(target.database, id, options.runner).catch(() => {});
  }
}

async function playToTheEnd(
  target: OperationTarget,
  id: string,
  { onProgress, runner, signal }: RunnerOptions,
): Promise<void> {
  const { database } = target;
  let sources = await planSources(target);
  let lastMs = performance.now();
  let credit = 1;
  let endedMs: number | null = null;
  while (!signal.aborted) {
    try {
      const round = await playRound(database, id, runner, Math.floor(credit), sources);
      if (round !== null) onProgress?.(round.plan);
      if (round === null || round.isOver) return;
      endedMs = round.plan.state === "running" ? null : (endedMs ?? performance.now());
      if (endedMs !== null && performance.now() - endedMs > WATCH_MS) return;
      await sleep(pauseMsOf(round), undefined, { signal });
      const nowMs = performance.now();
      credit = creditOf(round, credit, nowMs - lastMs);
      lastMs = nowMs;
    } catch (error) {
      if (signal.aborted) return;
      if (!isRelayError(error)) throw error;
      const mayPass = error.code === "DATABASE_BUSY" || error.code === "DATABASE_UNREACHABLE";
      if (!mayPass) return await stopPlan(database, id, runner, reasonOf(error));
      await sleep(ERROR_PAUSE_MS, undefined, { signal }).catch(() => {});
      sources = await planSources(target).catch(() => sources);
    }
  }
}

function pauseMsOf({ plan, released }: Round): number {
  return plan.action === "discard" && released > 0 ? 1 : ROUND_PAUSE_MS;
}

/**
 * How many events the next round may release by the plan's rate: at most one second's worth, so that a pause saves up
 * no burst.
 */
function creditOf({ plan, released }: Round, credit: number, elapsedMs: number): number {
  if (plan.ratePerSecond === null) return Number.MAX_SAFE_INTEGER;
  const left = Math.min(credit, Number.MAX_SAFE_INTEGER) - released;
  return Math.min(Math.max(1, plan.ratePerSecond), Math.max(0, left) + (plan.ratePerSecond * elapsedMs) / 1_000);
}

/** A running plan without a live runner, except these; null when there is none. */
export async function findOrphanPlan(database: Database, except: readonly string[] = []): Promise<string | null> {
  const rows = await glance(
    database.pool,
    database.errorContext("looking for plans"),
    database.timeouts.statementMs,
    `select id from ${database.tables.replayPlans} where state = 'running'
       and (runner is null or runner_until < clock_timestamp()) and id <> all(${quoteArray(except)}::uuid[]) order by created_at limit 1`,
  );
  return rows[0]?.[0] ?? null;
}
