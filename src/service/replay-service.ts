import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { reasonOf } from "../core/errors.ts";
import { pruneEdits } from "../operations/dead-letters/edits.ts";
import type { OperationTarget } from "../operations/events/event-source.ts";
import type { FrozenPlan } from "../operations/replay/frozen-plan.ts";
import { prunePlans } from "../operations/replay/prune-plans.ts";
import { findOrphanPlan, runPlan } from "../operations/replay/replay-runner.ts";
import type { Logger } from "../telemetry/logs/logger.ts";

const POLL_MS = 2_000;
const PRUNE_EVERY_POLLS = 1_800;
/** A relay notices a released event within seconds. A plan without progress for this long is left to the next relay. */
const STALLED_MS = 15_000;
/** Plans that one process runs at a time: each repeatedly takes a connection for a moment. */
const PLANS_MAX = 4;

/**
 * Runs the replay plans that have no runner: newly started ones, and those whose process ended in the middle. Stop
 * before start and a second stop are legal.
 */
export class ReplayService {
  readonly #target: () => OperationTarget;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  readonly #plans = new Map<string, Promise<void>>();
  #running: Promise<void> | null = null;

  constructor(target: () => OperationTarget, logger: Logger) {
    this.#target = target;
    this.#logger = logger;
  }

  start(): void {
    this.#running ??= this.#loop();
  }

  /**
   * For a run that ends by itself: runs the plans without a runner, one after the other. Returns those that made no
   * progress for a while, because their pipeline is paused or their destination is away: they stay started.
   */
  async once(): Promise<{ readonly count: number; readonly unfinished: readonly string[] }> {
    const unfinished: string[] = [];
    for (let count = 0; ; count += 1) {
      const id = await findOrphanPlan(this.#target().database, unfinished);
      if (id === null || this.#stopping.signal.aborted) return { count, unfinished };
      if (!(await this.#completes(id))) unfinished.push(id);
    }
  }

  async #completes(id: string): Promise<boolean> {
    const stalled = new AbortController();
    const timer = setTimeout(() => stalled.abort(), STALLED_MS);
    let last: FrozenPlan | null = null;
    const onProgress = (plan: FrozenPlan) => {
      if (JSON.stringify(plan.progress) !== JSON.stringify(last?.progress)) timer.refresh();
      last = plan;
    };
    const isRunning = () => last === null || last.state === "running";
    try {
      const signal = AbortSignal.any([stalled.signal, this.#stopping.signal]);
      await runPlan(this.#target(), id, { runner: randomUUID(), signal, onProgress });
      return !isRunning();
    } finally {
      clearTimeout(timer);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await Promise.all(this.#plans.values());
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping;
    for (let polls = 0; !signal.aborted; polls += 1) {
      if (polls % PRUNE_EVERY_POLLS === 0) await this.#prune();
      // The sources report a database that does not answer.
      if (this.#plans.size < PLANS_MAX) await this.#take().catch(() => {});
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #prune(): Promise<void> {
    try {
      const count = await prunePlans(this.#target().database);
      if (count > 0) this.#logger.info({ count }, "old replay plans were deleted");
      await pruneEdits(this.#target().database);
    } catch (error) {
      this.#logger.warn({ reason: reasonOf(error) }, "old replay plans could not be deleted; retrying");
    }
  }

  async #take(): Promise<void> {
    const target = this.#target();
    const id = await findOrphanPlan(target.database);
    if (id === null || this.#plans.has(id) || this.#stopping.signal.aborted) return;
    this.#logger.info({ plan: id }, "running a replay plan");
    const work = runPlan(target, id, { runner: randomUUID(), signal: this.#stopping.signal })
      .catch((error: unknown) => {
        this.#logger.error({ plan: id, reason: reasonOf(error) }, "a replay plan cannot run");
      })
      .finally(() => this.#plans.delete(id));
    this.#plans.set(id, work);
  }
}
