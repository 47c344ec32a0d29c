import type { Clock } from "../../core/clock.ts";
import { codeOf, reasonOf, stackOf } from "../../core/errors.ts";
import type { TechnicalEvents } from "../../ports/technical-events.ts";
import type { IntentHandler } from "../intent-handler.ts";
import type { ChangeStream } from "./change-stream.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { OwnerWatch } from "./lease.ts";
import { Mismatches } from "./mismatches.ts";
import { type MappingWorld, RelayMapping } from "./relay-mapping.ts";
import { RUNNER_TIMING, type RunnerTiming } from "./runner-timing.ts";

interface LocalRunnerOptions {
  readonly table: string;
  /** The table's stream of the moment. */
  readonly stream: () => Promise<ChangeStream>;
  readonly checkpoints: Checkpoints;
  /** This process in the checkpoints: the same name as their owner. */
  readonly self: string;
  readonly handlers: readonly IntentHandler[];
  /** All types that have a relay, also where another process runs it. */
  readonly knownTypes: readonly string[];
  readonly search: MappingWorld["search"];
  readonly isDue: MappingWorld["isDue"];
  readonly clock: Clock;
  readonly events: TechnicalEvents;
  readonly batchSize?: number;
  readonly timing?: Partial<RunnerTiming>;
  /** Each time the database answered a reader. */
  readonly answered?: () => void;
}

/** As a mapping has it where nothing else is said. */
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
  #looking: Promise<void> | null = null;
  #renewing: Promise<void> | null = null;

  constructor(options: LocalRunnerOptions) {
    this.#options = options;
    this.#timing = { ...RUNNER_TIMING, ...options.timing };
    const { batchSize = BATCH_SIZE, checkpoints, clock, events, isDue, knownTypes, search, self, table } = options;
    const world: MappingWorld = {
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
    this.#mappings = options.handlers.map((handler) => new RelayMapping(handler, world));
  }

  start(): void {
    this.#looking ??= this.#lookAgainAndAgain();
    this.#renewing ??= this.#renewAgainAndAgain();
  }

  /** Finishes what the handlers have in hand and gives the leases back. Legal at any time, also twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    // The leases are renewed to the last, or somebody else would begin with what is in hand here.
    await Promise.all([this.#looking, ...this.#mappings.map((mapping) => mapping.stop())]);
    this.#stopped.abort();
    await this.#renewing;
  }

  async #lookAgainAndAgain(): Promise<void> {
    const { clock, events, table } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#awake = new AbortController();
      const awake = this.#awake.signal;
      try {
        await this.#look();
        if (this.#isBroken) events.emit("SourceRecovered", { pipeline: table });
        this.#isBroken = false;
      } catch (error) {
        this.#isBroken = true;
        const reason = reasonOf(error);
        const code = codeOf(error, reason) ?? "DATABASE_UNREACHABLE";
        events.emit("SourceBroken", { pipeline: table, code, reason, stack: stackOf(error) });
        await clock.sleep(Math.min(1_000, this.#timing.lookMs), signal);
        continue;
      }
      await clock.sleep(this.#timing.lookMs, AbortSignal.any([signal, awake]));
    }
  }

  async #look(): Promise<void> {
    const { checkpoints } = this.#options;
    const stream = await this.#options.stream();
    const rows = await Promise.all(this.#mappings.map(({ relay }) => checkpoints.ofRelay(relay)));
    const shards = await stream.shards();
    this.#options.answered?.();
    await Promise.all(this.#mappings.map((mapping, index) => mapping.follow(stream, shards, rows[index] ?? [])));
  }

  async #renewAgainAndAgain(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await this.#options.clock.sleep(this.#timing.leaseMs / 4, signal);
      await Promise.all(this.#mappings.map((mapping) => mapping.renew()));
    }
  }
}
