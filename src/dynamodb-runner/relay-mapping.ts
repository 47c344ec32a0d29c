import type { Clock } from "../core/clock.ts";
import { codeOf, RelayError, reasonOf, stackOf } from "../core/errors.ts";
import { matchesFilter, streamFilter } from "../lambda/filter-pattern.ts";
import type { IntentHandler } from "../lambda/intent-handler.ts";
import type { LambdaContext, StreamRecord } from "../lambda/lambda-events.ts";
import type { TechnicalEvents } from "../ports/technical-events.ts";
import type { ChangeStream, StreamShard } from "./change-stream.ts";
import type { CheckpointRow, Checkpoints } from "./checkpoints.ts";
import { lambdaContext } from "./invocation.ts";
import { Lease, type OwnerWatch } from "./lease.ts";
import { finishedRows, lostPosition, readableShards, SWEEP } from "./shard-plan.ts";
import { type ReaderEvents, type ReaderTiming, ShardReader } from "./shard-reader.ts";
import { Sweeper } from "./sweeper.ts";

/** What the mappings of one runner share. */
export interface MappingContext {
  readonly table: string;
  readonly checkpoints: Checkpoints;
  readonly owners: OwnerWatch;
  /** This process in the checkpoints. */
  readonly self: string;
  readonly clock: Clock;
  readonly events: TechnicalEvents;
  readonly mismatches: Mismatches;
  readonly timing: RunnerTiming;
  readonly batchSize: number;
  /** Relays the intents of this type that are in the table but no longer in the stream. */
  readonly search: (handler: IntentHandler, stream: ChangeStream, signal: AbortSignal) => Promise<void>;
  /** Whether a sweep would find due intents. */
  readonly isDue: (type: string) => Promise<boolean>;
  /** Called when the database answered. */
  readonly answered: () => void;
  /** Called when there may be more to read at once. */
  readonly wake: () => void;
}

/** Passes the changes of a table to one handler: its shards in order, and due intents. */
export class RelayMapping {
  /** The relay's name in the checkpoints. */
  readonly relay: string;
  readonly #handler: IntentHandler;
  readonly #context: MappingContext;
  readonly #work = new Map<string, { readonly lease: Lease; readonly ended: Promise<void> }>();
  readonly #stopping = new AbortController();
  readonly #broken = new Set<string>();

  constructor(handler: IntentHandler, context: MappingContext) {
    this.#handler = handler;
    this.#context = context;
    this.relay = `${context.table}/${handler.type}`;
  }

  /**
   * Takes the shards that no runner reads. Read the rows before the shards, or a new shard's row would seem to be of a
   * trimmed shard.
   */
  async follow(stream: ChangeStream, shards: readonly StreamShard[], rows: readonly CheckpointRow[]): Promise<void> {
    const lost = lostPosition(stream.arn, shards, rows);
    if (lost !== null)
      return this.#reportBroken("places", new RelayError("STREAM_TRIMMED", `${this.#handler.type}: ${lost}`));
    this.#reportWorking("places");
    for (const row of finishedRows(shards, rows)) await this.#context.checkpoints.remove(row);
    const sweep = this.#rowOf(rows, SWEEP, stream);
    await this.#take(sweep, (lease) => this.#sweep(lease, sweep.position !== null, stream));
    // The search of the table comes before the stream: running both at once would send some intents twice.
    if (sweep.position === null) return;
    for (const { id } of readableShards(shards, rows)) {
      const row = this.#rowOf(rows, id, stream);
      await this.#take(row, (lease) => this.#read(lease, row.position, stream));
    }
  }

  /** Renews all leases of this mapping. */
  async renew(): Promise<void> {
    await Promise.allSettled([...this.#work.values()].map(({ lease }) => lease.renew()));
  }

  /** Waits for running work and releases the leases. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#work.values()].map(({ ended }) => ended));
  }

  async #take(row: CheckpointRow, work: (lease: Lease) => Promise<void>): Promise<void> {
    const { checkpoints, clock, owners, self, timing } = this.#context;
    const { shard } = row;
    if (this.#work.has(shard) || this.#stopping.signal.aborted || !owners.isFree(row, self)) return;
    const takenMs = clock.monotonicMs();
    const grant = await checkpoints.take(row);
    if (grant === null) return;
    const lease = new Lease(grant, takenMs, checkpoints, clock, timing.leaseMs);
    const ended = work(lease).finally(async () => {
      // If the release fails, another runner takes over after the lease expires.
      await lease.release().catch(() => {});
      this.#work.delete(shard);
      this.#context.wake();
    });
    this.#work.set(shard, { lease, ended });
  }

  async #read(lease: Lease, position: string | null, stream: ChangeStream): Promise<void> {
    const { batchSize, clock, mismatches, timing } = this.#context;
    const { shard } = lease.grant;
    const filter = streamFilter(this.#handler.type);
    const reader = new ShardReader({
      stream,
      shard,
      lease,
      position,
      clock,
      timing,
      batchSize,
      takes: (record) => {
        mismatches.see(record);
        return matchesFilter(filter, record);
      },
      invoke: (records) => this.#invoke(records),
      events: this.#readerEvents(shard),
    });
    const end = await reader.run(this.#stopping.signal);
    if (end === "lost")
      this.#reportBroken(shard, new RelayError("LEASE_LOST", `Another runner reads the shard ${shard} now.`));
    if (end !== "halted") this.#reportWorking(shard);
  }

  async #sweep(lease: Lease, isSearched: boolean, stream: ChangeStream): Promise<void> {
    const { clock, isDue, search, timing, wake } = this.#context;
    const sweeper = new Sweeper({
      lease,
      clock,
      isSearched,
      everyMs: timing.sweepMs,
      search: (signal) => search(this.#handler, stream, signal),
      searched: wake,
      sweep: async () => {
        if (await isDue(this.#handler.type)) await this.#handler({ "outbox-relay": "sweep" }, this.#lambdaContext());
      },
      broken: (error) => this.#reportBroken(SWEEP, error),
      works: () => this.#reportWorking(SWEEP),
    });
    await sweeper.run(this.#stopping.signal);
  }

  #invoke(records: readonly StreamRecord[]): Promise<unknown> {
    return this.#handler({ Records: records }, this.#lambdaContext());
  }

  #lambdaContext(): LambdaContext {
    const { clock, timing } = this.#context;
    return lambdaContext(clock, timing.invocationMs);
  }

  #readerEvents(shard: string): ReaderEvents {
    const { answered, events } = this.#context;
    return {
      broken: (error) => this.#reportBroken(shard, error),
      works: () => this.#reportWorking(shard),
      polled: answered,
      failed: (count, reason) =>
        events.emit("ChoreFailed", { pipeline: this.relay, chore: `batch of ${count}`, reason }),
    };
  }

  #reportBroken(part: string, error: unknown): void {
    this.#broken.add(part);
    const reason = reasonOf(error);
    const code = codeOf(error, reason) ?? "DATABASE_UNREACHABLE";
    this.#context.events.emit("SourceBroken", { pipeline: this.relay, code, reason, stack: stackOf(error) });
  }

  #reportWorking(part: string): void {
    if (!this.#broken.delete(part) || this.#broken.size > 0) return;
    this.#context.events.emit("SourceRecovered", { pipeline: this.relay });
  }

  #rowOf(rows: readonly CheckpointRow[], shard: string, { arn }: ChangeStream): CheckpointRow {
    const known = rows.find((row) => row.shard === shard);
    const none = { position: null, isDone: false, lost: null, owner: null, fence: 0, beat: 0 };
    return known ?? { relay: this.relay, shard, stream: arn, ...none };
  }
}

/** The type that is reported for an item without a readable intent type: no relay can process it. */
const NO_TYPE = "(none)";
/** Bounds the memory. With more types the cause is a single mistake. */
const TYPES_MAX = 1_000;

/** Reports intents whose type has no relay, once per type: they stay in the table, undelivered. */
export class Mismatches {
  readonly #events: TechnicalEvents;
  readonly #pipeline: string;
  readonly #known: ReadonlySet<string>;
  readonly #reported = new Set<string>();

  /** `known`: all types that have a relay, in this or another process. */
  constructor(events: TechnicalEvents, pipeline: string, known: readonly string[]) {
    this.#events = events;
    this.#pipeline = pipeline;
    this.#known = new Set(known);
  }

  see({ dynamodb, eventName }: StreamRecord): void {
    if (eventName !== "INSERT") return;
    const { id, intent } = dynamodb?.NewImage ?? {};
    const intentType = textOf((intent?.M as { readonly type?: unknown } | undefined)?.type) ?? NO_TYPE;
    if (this.#known.has(intentType) || this.#reported.has(intentType) || this.#reported.size >= TYPES_MAX) return;
    this.#reported.add(intentType);
    const recordId = textOf(id) ?? null;
    this.#events.emit("RelayMismatch", { pipeline: this.#pipeline, intentType, count: 1, recordId });
  }
}

function textOf(attribute: unknown): string | undefined {
  const text = (attribute as { readonly S?: unknown } | undefined)?.S;
  return typeof text === "string" ? text : undefined;
}

/** The runner's timing, all in milliseconds. */
export interface RunnerTiming extends ReaderTiming {
  /** Between two reads of the shard list and the checkpoints of other runners. */
  readonly refreshMs: number;
  /** An owner that sends no heartbeat for this time is dead. */
  readonly leaseMs: number;
  /** Between two sweeps. */
  readonly sweepMs: number;
  /** The limit of one handler call. */
  readonly invocationMs: number;
}

/** The defaults. */
export const RUNNER_TIMING: RunnerTiming = {
  pollMs: 250,
  windowMs: 20,
  pauseMs: { firstMs: 200, lastMs: 5_000 },
  refreshMs: 2_000,
  leaseMs: 10_000,
  sweepMs: 5_000,
  invocationMs: 30_000,
};
