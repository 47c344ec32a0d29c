import type { Clock } from "../../core/clock.ts";
import { codeOf, RelayError, reasonOf, stackOf } from "../../core/errors.ts";
import type { TechnicalEvents } from "../../ports/technical-events.ts";
import { matchesFilter, streamFilter } from "../filter-pattern.ts";
import type { IntentHandler } from "../intent-handler.ts";
import type { LambdaContext, StreamRecord } from "../lambda-events.ts";
import type { ChangeStream, StreamShard } from "./change-stream.ts";
import type { CheckpointRow } from "./checkpoint-row.ts";
import type { Checkpoints } from "./checkpoints.ts";
import { lambdaContext } from "./lambda-context.ts";
import { Lease, type OwnerWatch } from "./lease.ts";
import type { Mismatches } from "./mismatches.ts";
import type { RunnerTiming } from "./runner-timing.ts";
import { lostPlace, outlivedRows, readableShards, SWEEP } from "./shard-plan.ts";
import { type ReaderEvents, ShardReader } from "./shard-reader.ts";
import { Sweeper } from "./sweeper.ts";

/** What the mappings of one runner share. */
export interface MappingWorld {
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
  /** Relays what the table holds of this type and no stream tells any more. */
  readonly search: (handler: IntentHandler, stream: ChangeStream, signal: AbortSignal) => Promise<void>;
  /** Whether a sweep would find something. */
  readonly isDue: (type: string) => Promise<boolean>;
  /** The database answered. */
  readonly answered: () => void;
  /** There may be more to read at once. */
  readonly wake: () => void;
}

/** What hands the changes of a table to one handler: its shards in order, and what is due. */
export class RelayMapping {
  /** In the checkpoints. */
  readonly relay: string;
  readonly #handler: IntentHandler;
  readonly #world: MappingWorld;
  readonly #work = new Map<string, { readonly lease: Lease; readonly ended: Promise<void> }>();
  readonly #stopping = new AbortController();
  readonly #broken = new Set<string>();

  constructor(handler: IntentHandler, world: MappingWorld) {
    this.#handler = handler;
    this.#world = world;
    this.relay = `${world.table}/${handler.type}`;
  }

  /** Takes up what nobody reads. The rows were read before the shards, or a new shard would seem to be gone. */
  async follow(stream: ChangeStream, shards: readonly StreamShard[], rows: readonly CheckpointRow[]): Promise<void> {
    const lost = lostPlace(stream.arn, shards, rows);
    if (lost !== null) return this.#tell("places", new RelayError("STREAM_TRIMMED", `${this.#handler.type}: ${lost}`));
    this.#works("places");
    for (const row of outlivedRows(shards, rows)) await this.#world.checkpoints.remove(row);
    const sweep = this.#rowOf(rows, SWEEP, stream);
    await this.#take(sweep, (lease) => this.#sweep(lease, sweep.place !== null, stream));
    // What the stream no longer tells goes first: both at once would send some intents twice.
    if (sweep.place === null) return;
    for (const { id } of readableShards(shards, rows)) {
      const row = this.#rowOf(rows, id, stream);
      await this.#take(row, (lease) => this.#read(lease, row.place, stream));
    }
  }

  /** Signs of life for all that it owns. */
  async renew(): Promise<void> {
    await Promise.allSettled([...this.#work.values()].map(({ lease }) => lease.renew()));
  }

  /** Finishes what is in hand, and gives the leases back. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#work.values()].map(({ ended }) => ended));
  }

  async #take(row: CheckpointRow, work: (lease: Lease) => Promise<void>): Promise<void> {
    const { checkpoints, clock, owners, self, timing } = this.#world;
    const { shard } = row;
    if (this.#work.has(shard) || this.#stopping.signal.aborted || !owners.isFree(row, self)) return;
    const takenMs = clock.monotonicMs();
    const grant = await checkpoints.take(row);
    if (grant === null) return;
    const lease = new Lease(grant, takenMs, checkpoints, clock, timing.leaseMs);
    const ended = work(lease).finally(async () => {
      // An owner that is gone without a word is found after its lease.
      await lease.release().catch(() => {});
      this.#work.delete(shard);
      this.#world.wake();
    });
    this.#work.set(shard, { lease, ended });
  }

  async #read(lease: Lease, place: string | null, stream: ChangeStream): Promise<void> {
    const { batchSize, clock, mismatches, timing } = this.#world;
    const { shard } = lease.grant;
    const filter = streamFilter(this.#handler.type);
    const reader = new ShardReader({
      stream,
      shard,
      lease,
      place,
      clock,
      timing,
      batchSize,
      takes: (record) => {
        mismatches.see(record);
        return matchesFilter(filter, record);
      },
      invoke: (records) => this.#invoke(records),
      told: this.#readerEvents(shard),
    });
    const end = await reader.run(this.#stopping.signal);
    if (end === "lost") this.#tell(shard, new RelayError("LEASE_LOST", `Another runner reads the shard ${shard} now.`));
    if (end !== "halted") this.#works(shard);
  }

  async #sweep(lease: Lease, isSearched: boolean, stream: ChangeStream): Promise<void> {
    const { clock, isDue, search, timing, wake } = this.#world;
    const sweeper = new Sweeper({
      lease,
      clock,
      isSearched,
      everyMs: timing.sweepMs,
      search: (signal) => search(this.#handler, stream, signal),
      searched: wake,
      sweep: async () => {
        if (await isDue(this.#handler.type)) await this.#handler({ "outbox-relay": "sweep" }, this.#context());
      },
      broken: (error) => this.#tell(SWEEP, error),
      works: () => this.#works(SWEEP),
    });
    await sweeper.run(this.#stopping.signal);
  }

  #invoke(records: readonly StreamRecord[]): Promise<unknown> {
    return this.#handler({ Records: records }, this.#context());
  }

  #context(): LambdaContext {
    const { clock, timing } = this.#world;
    return lambdaContext(clock, timing.invocationMs);
  }

  #readerEvents(shard: string): ReaderEvents {
    const { answered, events } = this.#world;
    return {
      broken: (error) => this.#tell(shard, error),
      works: () => this.#works(shard),
      polled: answered,
      failed: (count, reason) =>
        events.emit("ChoreFailed", { pipeline: this.relay, chore: `batch of ${count}`, reason }),
    };
  }

  #tell(part: string, error: unknown): void {
    this.#broken.add(part);
    const reason = reasonOf(error);
    const code = codeOf(error, reason) ?? "DATABASE_UNREACHABLE";
    this.#world.events.emit("SourceBroken", { pipeline: this.relay, code, reason, stack: stackOf(error) });
  }

  #works(part: string): void {
    if (!this.#broken.delete(part) || this.#broken.size > 0) return;
    this.#world.events.emit("SourceRecovered", { pipeline: this.relay });
  }

  #rowOf(rows: readonly CheckpointRow[], shard: string, { arn }: ChangeStream): CheckpointRow {
    const known = rows.find((row) => row.shard === shard);
    const none = { place: null, isDone: false, lost: null, owner: null, fence: 0, beat: 0 };
    return known ?? { relay: this.relay, shard, stream: arn, ...none };
  }
}
