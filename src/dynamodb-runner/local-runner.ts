import type { Clock } from "../core/clock.ts";
import { codeOf, reasonOf, stackOf } from "../core/errors.ts";
import type { IntentHandler } from "../lambda/intent-handler.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import type { ChangeStream } from "./change-stream.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { OwnerWatch } from "./lease.ts";
import { type MappingContext, Mismatches, RelayMapping, RUNNER_TIMING, type RunnerTiming } from "./relay-mapping.ts";

interface LocalRunnerOptions {
  readonly table: string;
  /** The table's current stream. */
  readonly stream: () => Promise<ChangeStream>;
  readonly checkpoints: Checkpoints;
  /** The name of this process as an owner of checkpoints. */
  readonly self: string;
  readonly handlers: readonly IntentHandler[];
  /** All types that have a relay, in this or another process. */
  readonly knownTypes: readonly string[];
  readonly search: MappingContext["search"];
  readonly isDue: MappingContext["isDue"];
  readonly clock: Clock;
  readonly events: TechnicalEvents;
  readonly batchSize?: number;
  readonly timing?: Partial<RunnerTiming>;
  /** Called each time the database answered a reader. */
  readonly answered?: () => void;
}

/** The default of an event source mapping. */
const BATCH_SIZE = 100;

/** Runs Lambda handlers without AWS, as event source mappings and schedules would. */
export class LocalRunner {
  readonly #options: LocalRunnerOptions;
  readonly #timing: RunnerTiming;
  readonly #mappings: readonly RelayMapping[];
  readonly #stopping = new AbortController();
  readonly #stopped = new AbortController();
  #awake = new AbortController();
  #isBroken = false;
  #polling: Promise<void> | null = null;
  #renewing: Promise<void> | null = null;

  constructor(options: LocalRunnerOptions) {
    this.#options = options;
    this.#timing = { ...RUNNER_TIMING, ...options.timing };
    const { batchSize = BATCH_SIZE, checkpoints, clock, events, isDue, knownTypes, search, self, table } = options;
    const context: MappingContext = {
      table,
      checkpoints,
      owners: new OwnerWatch(clock, this.#timing.leaseMs),
      self,
      clock,
      events,
      mismatches: new Mismatches(events, table, knownTypes),
      timing: this.#timing,
      batchSize,
      search,
      isDue,
      answered: options.answered ?? (() => {}),
      wake: () => this.#awake.abort(),
    };
    this.#mappings = options.handlers.map((handler) => new RelayMapping(handler, context));
  }

  start(): void {
    this.#polling ??= this.#pollLoop();
    this.#renewing ??= this.#renewLoop();
  }

  /** Waits for running handlers and releases the leases. May be called at any time, also twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    // Renew the leases until all handlers are done, or another runner would relay the same records.
    await Promise.all([this.#polling, ...this.#mappings.map((mapping) => mapping.stop())]);
    this.#stopped.abort();
    await this.#renewing;
  }

  async #pollLoop(): Promise<void> {
    const { clock, events, table } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#awake = new AbortController();
      const awake = this.#awake.signal;
      try {
        await this.#poll();
        if (this.#isBroken) events.emit("SourceRecovered", { pipeline: table });
        this.#isBroken = false;
      } catch (error) {
        this.#isBroken = true;
        const reason = reasonOf(error);
        const code = codeOf(error, reason) ?? "DATABASE_UNREACHABLE";
        events.emit("SourceBroken", { pipeline: table, code, reason, stack: stackOf(error) });
        await clock.sleep(Math.min(1_000, this.#timing.refreshMs), signal);
        continue;
      }
      await clock.sleep(this.#timing.refreshMs, AbortSignal.any([signal, awake]));
    }
  }

  async #poll(): Promise<void> {
    const { checkpoints } = this.#options;
    const stream = await this.#options.stream();
    const rows = await Promise.all(this.#mappings.map(({ relay }) => checkpoints.ofRelay(relay)));
    const shards = await stream.shards();
    this.#options.answered?.();
    await Promise.all(this.#mappings.map((mapping, index) => mapping.follow(stream, shards, rows[index] ?? [])));
  }

  async #renewLoop(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#options.clock.sleep(this.#timing.leaseMs / 4, signal);
      await Promise.all(this.#mappings.map((mapping) => mapping.renew()));
    }
  }
}
