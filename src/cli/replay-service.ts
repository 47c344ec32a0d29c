import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { reasonOf } from "../core/errors.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { prunePlans } from "../operations/replay/prune-plans.ts";
import { findOrphanPlan, runPlan } from "../operations/replay/replay-runner.ts";
import type { Logger } from "../telemetry/logger.ts";

const LOOK_MS = 2_000;
const PRUNE_EVERY_LOOKS = 1_800;
/** Plans that one process works on at a time: each takes a connection for a moment, again and again. */
const PLANS_MAX = 4;

/**
 * Carries out the replay plans that nobody works on: those that were started by a person, and those whose process has
 * ended in the middle. Stop before start and a second stop are legal.
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

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await Promise.all(this.#plans.values());
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping;
    for (let looks = 0; !signal.aborted; looks += 1) {
      if (looks % PRUNE_EVERY_LOOKS === 0) await this.#prune();
      // A database that cannot be asked is told of by the sources.
      if (this.#plans.size < PLANS_MAX) await this.#take().catch(() => {});
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #prune(): Promise<void> {
    try {
      const count = await prunePlans(this.#target().database);
      if (count > 0) this.#logger.info({ count }, "old replay plans were forgotten");
    } catch (error) {
      this.#logger.warn({ reason: reasonOf(error) }, "old replay plans could not be forgotten; it is tried again");
    }
  }

  async #take(): Promise<void> {
    const target = this.#target();
    const id = await findOrphanPlan(target.database);
    if (id === null || this.#plans.has(id) || this.#stopping.signal.aborted) return;
    this.#logger.info({ plan: id }, "a replay plan is carried out");
    const work = runPlan(target, id, { runner: randomUUID(), signal: this.#stopping.signal })
      .catch((error: unknown) => {
        this.#logger.error({ plan: id, reason: reasonOf(error) }, "a replay plan cannot be carried out");
      })
      .finally(() => this.#plans.delete(id));
    this.#plans.set(id, work);
  }
}
