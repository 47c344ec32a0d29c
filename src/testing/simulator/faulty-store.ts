import type { Hold } from "../../core/hold.ts";
import type { Joining, Membership } from "../../ports/membership.ts";
import type {
  Backlog,
  ClaimedEvent,
  DurableClaims,
  Grant,
  Heads,
  LookedAt,
  PipelineIdentity,
  PipelineSpec,
  QueueSource,
  QueueStore,
  Run,
  RunRequest,
  Settlement,
  SettleResult,
  Survey,
  Takeover,
} from "../../ports/queue-store.ts";
import { memorySource } from "../../sources/memory/memory-source.ts";
import type { MemoryLaneRow } from "../../sources/memory/memory-tables.ts";
import { PortCalls, unreachable, type World } from "./port-call.ts";
import type { SimProcess } from "./sim-process.ts";
import { takeTime } from "./slow-settles.ts";

export interface OpenRun {
  readonly isBusy: boolean;
}

/** Pipelines that a process has reported as paused, and since when. */
type Pauses = ReadonlyMap<string, number>;

/** A process's view of the shared database, with faults at every call. */
export function faultySource(world: World, process: SimProcess, openRuns: Set<OpenRun>, pauses: Pauses): QueueSource {
  const inner = memorySource({ database: world.database.model });
  const calls = new PortCalls(world, process);
  return {
    name: "outbox",
    membership: new FaultyMembership(inner.membership, world, calls, process),
    pipeline: (spec) => new FaultyStore(inner.pipeline(spec), { spec, pauses }, world, calls, process, openRuns),
    close: () => inner.close(),
  };
}

class FaultyMembership implements Membership {
  readonly databaseId: string;
  readonly #inner: Membership;
  readonly #world: World;
  readonly #calls: PortCalls;
  readonly #process: SimProcess;

  constructor(inner: Membership, world: World, calls: PortCalls, process: SimProcess) {
    this.#inner = inner;
    this.#world = world;
    this.#calls = calls;
    this.#process = process;
    this.databaseId = inner.databaseId;
  }

  async join(instance: Joining): Promise<void> {
    const joinedMs = await this.#calls.call("join", true, async () => {
      await this.#inner.join(instance);
      return this.#world.time.nowMs;
    });
    this.#process.prolongLease(joinedMs);
  }

  async renew(id: string, leaseMs: number): Promise<boolean> {
    const renewedMs = await this.#calls.call("renew", true, async () => {
      const isAlive = await this.#inner.renew(id, leaseMs);
      return isAlive ? this.#world.time.nowMs : null;
    });
    if (renewedMs !== null) this.#process.prolongLease(renewedMs);
    return renewedMs !== null;
  }

  reap(): Promise<string[]> {
    return this.#calls.call("reap", true, () => this.#inner.reap());
  }

  leave(id: string): Promise<void> {
    return this.#calls.call("leave", true, () => this.#inner.leave(id));
  }
}

class FaultyStore implements QueueStore {
  readonly durableClaims: DurableClaims | null;
  readonly #inner: QueueStore;
  readonly #spec: PipelineSpec;
  readonly #world: World;
  readonly #calls: PortCalls;
  readonly #process: SimProcess;
  readonly #openRuns: Set<OpenRun>;
  readonly #pauses: Pauses;

  constructor(
    inner: QueueStore,
    { spec, pauses }: { readonly spec: PipelineSpec; readonly pauses: Pauses },
    world: World,
    calls: PortCalls,
    process: SimProcess,
    openRuns: Set<OpenRun>,
  ) {
    this.#inner = inner;
    this.#spec = spec;
    this.#pauses = pauses;
    this.#world = world;
    this.#calls = calls;
    this.#process = process;
    this.#openRuns = openRuns;
    this.durableClaims = inner.durableClaims === null ? null : faultyClaims(inner.durableClaims, calls);
  }

  prepare(): Promise<{ readonly lanes: number }> {
    return this.#calls.call("prepare", false, () => this.#inner.prepare());
  }

  readUnsettled(ids: readonly string[]): Promise<LookedAt> {
    return this.#calls.call("readUnsettled", false, () => this.#inner.readUnsettled(ids));
  }

  identity(): Promise<PipelineIdentity> {
    return this.#calls.call("identity", false, () => this.#inner.identity());
  }

  survey(): Promise<Survey> {
    return this.#calls.call("survey", false, () => this.#inner.survey());
  }

  takeOver(owner: string, lanes: readonly number[]): Promise<readonly Takeover[]> {
    return this.#calls.call("takeOver", true, async () => {
      const taken = await this.#inner.takeOver(owner, lanes);
      for (const { grant, crashes } of taken) {
        this.#record(grant, "takeOver");
        this.#note(`took lane ${grant.lane} at epoch ${grant.epoch}, crashes ${crashes}`);
      }
      return taken;
    });
  }

  release(grant: Grant, suspects: readonly string[] = []): Promise<void> {
    return this.#calls.call("release", true, () => {
      this.#note(`releases lane ${grant.lane}`);
      return this.#inner.release(grant, suspects);
    });
  }

  probe(grants: readonly Grant[]): Promise<boolean> {
    return this.#calls.call("probe", false, () => this.#inner.probe(grants));
  }

  async begin(request: RunRequest): Promise<Run> {
    this.#checkPause();
    const incarnation = this.#world.database.incarnation;
    const run = await this.#calls.call("begin", false, () => this.#inner.begin(request));
    return new FaultyRun(run, this.#world, this.#calls, incarnation, this.#openRuns, this.durableClaims !== null);
  }

  claimHeads(grant: Grant, ids: readonly string[]): Promise<Heads> {
    this.#checkPause();
    return this.#calls.call("claimHeads", this.durableClaims !== null, () => this.#inner.claimHeads(grant, ids));
  }

  async settle(settlement: Settlement): Promise<SettleResult> {
    await takeTime(this.#world.slowSettles, this.#process, settlement);
    return await this.#calls.call("settle", true, async () => {
      const before = this.#laneNow(settlement.grant.lane);
      const result = await this.#inner.settle(settlement);
      this.#checkFence(settlement, before);
      this.#record(settlement.grant, "settle");
      this.#world.history.settle(settlement.delivered.filter((id) => !result.missing.includes(id)));
      this.#world.history.settleBatch(`${this.#spec.name} ${settlement.grant.lane}`, settlement.batch);
      this.#note(`settled ${describe(settlement)}`);
      return result;
    });
  }

  reviewHolds(grant: Grant): Promise<readonly Hold[]> {
    return this.#calls.call("reviewHolds", true, () => this.#inner.reviewHolds(grant));
  }

  unrouted(): Promise<readonly { readonly type: string; readonly count: number }[]> {
    return this.#calls.call("unrouted", false, () => this.#inner.unrouted());
  }

  backlog(): Promise<Backlog> {
    return this.#calls.call("backlog", false, () => this.#inner.backlog());
  }

  prune(olderThanMs: number, rows: number): Promise<number> {
    return this.#calls.call("prune", true, () => this.#inner.prune(olderThanMs, rows));
  }

  #laneNow(lane: number): MemoryLaneRow | undefined {
    return this.#world.database.model.tables.pipelines.get(this.#spec.name)?.lanes.get(lane);
  }

  #checkPause(): void {
    const sinceMs = this.#pauses.get(this.#spec.name);
    if (sinceMs === undefined || sinceMs >= this.#world.time.nowMs) return;
    this.#world.history.violate(
      "pause",
      `${this.#process.name} claims events although it knows that the pipeline is paused`,
    );
  }

  #checkFence({ grant, previousBatch }: Settlement, lane: MemoryLaneRow | undefined): void {
    if (lane?.owner === grant.owner && lane.epoch === grant.epoch && lane.settledBatch === previousBatch) return;
    this.#world.history.violate("lanes", `a settle of ${this.#process.name} took effect under an old grant`);
  }

  #record({ lane, epoch, owner }: Grant, kind: "takeOver" | "settle"): void {
    const { history, time } = this.#world;
    history.laneWrites.push({ pipeline: this.#spec.name, lane, epoch, owner, kind, atMs: time.nowMs });
  }

  #note(what: string): void {
    this.#world.history.note(this.#process.name, `${this.#spec.name}: ${what}`);
  }
}

/** A run uses one connection: after an error or an outage it returns no more events. */
class FaultyRun implements Run {
  readonly lanes: Run["lanes"];
  readonly #inner: Run;
  readonly #world: World;
  readonly #calls: PortCalls;
  readonly #incarnation: number;
  readonly #openRuns: Set<OpenRun>;
  readonly #claims: boolean;
  /** A call is in progress: its connection is not idle yet, and closing the source waits for it. */
  isBusy = false;
  #isBroken = false;

  constructor(
    inner: Run,
    world: World,
    calls: PortCalls,
    incarnation: number,
    openRuns: Set<OpenRun>,
    claims: boolean,
  ) {
    this.lanes = inner.lanes;
    this.#inner = inner;
    this.#world = world;
    this.#calls = calls;
    this.#incarnation = incarnation;
    this.#openRuns = openRuns;
    this.#claims = claims;
    openRuns.add(this);
  }

  async next(...asked: Parameters<Run["next"]>): Promise<readonly ClaimedEvent[]> {
    this.isBusy = true;
    try {
      return await this.#calls.call("next", this.#claims, async () => {
        if (this.#isBroken || this.#incarnation !== this.#world.database.incarnation) throw unreachable("next");
        return this.#inner.next(...asked);
      });
    } catch (error) {
      this.#isBroken = true;
      throw error;
    } finally {
      this.isBusy = false;
    }
  }

  end(): Promise<void> {
    this.#openRuns.delete(this);
    return this.#calls.call("end", false, () => this.#inner.end());
  }
}

function faultyClaims(inner: DurableClaims, calls: PortCalls): DurableClaims {
  return {
    leaseMs: inner.leaseMs,
    refresh: (owner, ids) => calls.call("refresh", true, () => inner.refresh(owner, ids)),
    reapStale: (rows) => calls.call("reapStale", true, () => inner.reapStale(rows)),
  };
}

function describe({
  grant,
  batch,
  delivered,
  failed,
  handedBack,
  releasedHolds,
  sending,
  suspects,
}: Settlement): string {
  const parts = [
    `lane ${grant.lane} batch ${batch}`,
    delivered.length > 0 && `delivered ${delivered.join(" ")}`,
    failed.length > 0 && `failed ${failed.map(({ id, attempts, next }) => `${id}#${attempts}:${next.kind}`).join(" ")}`,
    handedBack.length > 0 && `handed back ${handedBack.join(" ")}`,
    releasedHolds.length > 0 && `released ${releasedHolds.join(" ")}`,
    sending !== undefined && `sending ${sending.join(" ")}`,
    suspects.length > 0 && `suspects ${suspects.map(({ id }) => id).join(" ")}`,
  ];
  return parts.filter((part) => part !== false).join(", ");
}
