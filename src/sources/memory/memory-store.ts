import { RelayError } from "../../core/errors.ts";
import type { Hold } from "../../core/hold.ts";
import type {
  Backlog,
  ClaimedEvent,
  Grant,
  Heads,
  LaneState,
  LookedAt,
  PipelineIdentity,
  PipelineSpec,
  QueueStore,
  Run,
  RunRequest,
  Settlement,
  SettleResult,
  Survey,
  Takeover,
} from "../../ports/queue-store.ts";
import { holdsGrant, MemoryClaims } from "./memory-claims.ts";
import type { MemoryDatabase } from "./memory-database.ts";
import { laneOf, typeMatcher } from "./memory-lanes.ts";
import { isAlive } from "./memory-membership.ts";
import { claimedEvent, MemoryRun } from "./memory-run.ts";
import { SettleWriter } from "./memory-settle.ts";
import type {
  MemoryEventRow,
  MemoryHoldRow,
  MemoryInstanceRow,
  MemoryLaneRow,
  MemoryPipelineTables,
} from "./memory-tables.ts";

const UNROUTED_COUNT_MAX = 1_000;

/** Every method takes effect atomically, before its promise resolves. */
export class MemoryStore implements QueueStore {
  readonly durableClaims: MemoryClaims | null;
  readonly #database: MemoryDatabase;
  readonly #spec: PipelineSpec;
  readonly #isMine: (row: MemoryEventRow) => boolean;

  constructor(database: MemoryDatabase, spec: PipelineSpec) {
    this.#database = database;
    this.#spec = spec;
    this.#isMine = typeMatcher(spec.types);
    this.durableClaims = database.durableClaims
      ? new MemoryClaims({
          database,
          spec,
          isMine: this.#isMine,
          pipeline: () => this.#pipeline(),
          laneOf: (row) => laneOf(row, this.#pipeline().lanes.size),
        })
      : null;
  }

  async prepare(): Promise<{ readonly lanes: number }> {
    const { tables } = this.#database;
    const { name, types, lanes: proposed } = this.#spec;
    const existing = tables.pipelines.get(name);
    if (existing !== undefined) return { lanes: existing.lanes.size };
    const lanes = new Map<number, MemoryLaneRow>();
    for (let lane = 0; lane < proposed; lane += 1) {
      lanes.set(lane, { lane, owner: null, epoch: 0n, settledBatch: 0n, ledgeredBatch: 0n, crashes: 0, sending: [] });
    }
    // Not in a transaction: a failover that loses the last commits still has the schema, which is much older.
    tables.pipelines.set(name, { name, types, lanes, holds: new Map() });
    return { lanes: proposed };
  }

  async identity(): Promise<PipelineIdentity> {
    const { databaseId, tables } = this.#database;
    let firstSlot = 0;
    for (const { name, lanes } of tables.pipelines.values()) {
      if (name === this.#spec.name) break;
      firstSlot += lanes.size;
    }
    return { database: databaseId, firstSlot, lanes: this.#pipeline().lanes.size, isAtHome: true };
  }

  async survey(): Promise<Survey> {
    const instances = this.#livingOnes()
      .filter(({ pipelines }) => pipelines.includes(this.#spec.name))
      .map(({ id }) => id);
    const { limits, pauses } = this.#database.tables;
    return {
      instances,
      lanes: [...this.#pipeline().lanes.values()].map((row) => this.#laneState(row)),
      pause: pauses.get(this.#spec.name) ?? null,
      limitPerSecond: limits.get(this.#spec.name) ?? null,
    };
  }

  async takeOver(owner: string, lanes: readonly number[]): Promise<readonly Takeover[]> {
    const { tables } = this.#database;
    const isLiving = (id: string) => isAlive(tables.instances.get(id), this.#database.nowMs());
    if (!isLiving(owner)) return [];
    return tables.commit(() => {
      const rows = lanes.map((lane) => this.#pipeline().lanes.get(lane)).filter((row) => row !== undefined);
      const free = rows.filter((row) => row.owner === null || row.owner === owner || !isLiving(row.owner));
      return free.map((row) => this.#take(row, owner));
    });
  }

  async release(grant: Grant, suspects: readonly string[] = []): Promise<void> {
    const { tables } = this.#database;
    const pipeline = this.#pipeline();
    if (!this.#holdsGrant(grant)) return;
    tables.commit(() => {
      const lane = pipeline.lanes.get(grant.lane)!;
      this.durableClaims?.freeLane(lane, grant.owner, false);
      tables.put(pipeline.lanes, grant.lane, { ...lane, owner: null, sending: [] });
      // The events noted as about to be sent crashed no process.
      for (const id of suspects) {
        const hold = pipeline.holds.get(id);
        if (hold?.state !== "suspect") continue;
        tables.put(pipeline.holds, id, { ...hold, state: "retrying", crashes: hold.crashes - 1 });
      }
    });
  }

  async probe(grants: readonly Grant[]): Promise<boolean> {
    const isShown = this.#visibility({ grants, exceptKeys: [], exceptTypes: [] });
    for (const row of this.#database.tables.open.values()) if (isShown(row)) return true;
    return false;
  }

  async begin(request: RunRequest): Promise<Run> {
    const pipeline = this.#pipeline();
    const lanes = request.grants.map(({ lane }) => pipeline.lanes.get(lane)).filter((lane) => lane !== undefined);
    const isShown = this.#visibility(request);
    const open = inOrder([...this.#database.tables.open.values()]);
    // With durable claims, an event waiting for its retry must also keep back the later events of its key.
    const rows = open.filter(this.durableClaims === null ? isShown : this.#behindNobody(isShown));
    return new MemoryRun(
      lanes.map((row) => this.#laneState(row)),
      rows,
      (row) => laneOf(row, pipeline.lanes.size),
      (page) => this.#show(page, request.grants),
    );
  }

  async claimHeads(grant: Grant, ids: readonly string[]): Promise<Heads> {
    if (this.durableClaims !== null) this.#fence(grant);
    const pipeline = this.#pipeline();
    const nowMs = this.#database.nowMs();
    const events: ClaimedEvent[] = [];
    const gone: string[] = [];
    this.#database.tables.commit(() => {
      for (const id of ids) {
        const row = this.#database.tables.open.get(id);
        const hold = pipeline.holds.get(id);
        const isDue = hold === undefined || (hold.dueAtMs !== null && hold.dueAtMs <= nowMs);
        if (row?.state !== "PENDING" && row?.lockedBy !== grant.owner) gone.push(id);
        else if (isDue && this.durableClaims?.claim(id, grant.owner) !== null) {
          events.push(claimedEvent(row, grant.lane, hold?.attempts ?? row.attempts, this.#spec));
        }
      }
    });
    return { events, gone };
  }

  async readUnsettled(ids: readonly string[]): Promise<LookedAt> {
    const rows = ids
      .map((id) => this.#database.row(id))
      .filter((row) => row !== undefined && row.state !== "DELIVERED") as MemoryEventRow[];
    const lanes = this.#pipeline().lanes.size;
    return { events: rows.map((row) => claimedEvent(row, laneOf(row, lanes), row.attempts, this.#spec)), unread: [] };
  }

  async settle(settlement: Settlement): Promise<SettleResult> {
    const pipeline = this.#pipeline();
    return this.#database.tables.commit(() => {
      this.#fence(settlement.grant);
      const settled = pipeline.lanes.get(settlement.grant.lane)!.settledBatch;
      if (settled !== settlement.previousBatch) {
        throw fenced(`lane ${settlement.grant.lane} is at batch ${settled}, not ${settlement.previousBatch}`);
      }
      const writer = new SettleWriter(this.#database, pipeline, settlement);
      writer.write();
      this.durableClaims?.handBack(settlement.handedBack, settlement.grant.owner);
      return { missing: writer.missing, dead: writer.dead, unmarked: writer.unmarked };
    });
  }

  async reviewHolds(grant: Grant): Promise<readonly Hold[]> {
    this.#fence(grant);
    const { tables } = this.#database;
    const { holds } = this.#pipeline();
    const nowMs = this.#database.nowMs();
    return tables.commit(() => {
      for (const hold of [...holds.values()].filter(({ lane }) => lane === grant.lane)) {
        const row = this.#database.row(hold.id);
        if (row === undefined || row.state === "DELIVERED") tables.delete(holds, hold.id);
        else if (hold.unmarked !== undefined) this.#markAgain(hold, row);
        else if (hold.state === "dead" && row.state === "PENDING") {
          const reset = { attempts: 0, crashes: 0, errors: [], dueAtMs: nowMs };
          tables.put(holds, hold.id, { ...hold, ...reset, state: "retrying", parks: hold.key !== null });
        }
      }
      return this.#holdsOf(grant.lane);
    });
  }

  #markAgain(hold: MemoryHoldRow, row: MemoryEventRow): void {
    if (this.#database.refusesMark(row.id)) return;
    this.#database.close(row, "DELIVERED");
    this.#database.tables.delete(this.#pipeline().holds, hold.id);
  }

  async unrouted(): Promise<readonly { readonly type: string; readonly count: number }[]> {
    const living = this.#livingOnes().flatMap((instance) => instance.pipelines.map((name) => ({ name, instance })));
    const takes = living.map(({ name, instance }) => instance.takes?.[name]);
    if (takes.includes(undefined) || this.#reporter(living) !== this.#spec.name) return [];
    const matchers = takes.map((filter) => typeMatcher(filter ?? null));
    const counts = new Map<string, number>();
    for (const row of this.#database.tables.open.values()) {
      if (matchers.some((takes) => takes(row))) continue;
      const { type } = row;
      counts.set(type, Math.min(UNROUTED_COUNT_MAX, (counts.get(type) ?? 0) + 1));
    }
    return [...counts].map(([type, count]) => ({ type, count }));
  }

  /** Of several pipelines, one reports unrouted events: the first by name that has an owner of lane 0. */
  #reporter(living: readonly { readonly name: string; readonly instance: MemoryInstanceRow }[]): string {
    const laneZero = (name: string) => this.#database.tables.pipelines.get(name)?.lanes.get(0)?.owner;
    const named = living.filter(({ name, instance }) => laneZero(name) === instance.id).map(({ name }) => name);
    return named.sort()[0] ?? this.#spec.name;
  }

  #livingOnes(): MemoryInstanceRow[] {
    const nowMs = this.#database.nowMs();
    return [...this.#database.tables.instances.values()].filter((instance) => isAlive(instance, nowMs));
  }

  async backlog(): Promise<Backlog> {
    const holds = [...this.#pipeline().holds.values()].filter(({ state }) => state === "dead");
    const heldIds = new Set(holds.map(({ id }) => id));
    const parked = new Set(holds.filter(({ parks }) => parks).map(({ key }) => key));
    const left = [...this.#database.tables.open.values()].filter((row) => this.#isMine(row) && !heldIds.has(row.id));
    const waiting = left.filter(({ key }) => key === null || !parked.has(key));
    const times = waiting.flatMap(({ createdAt }) => (createdAt === null ? [] : [Date.parse(createdAt)]));
    const oldestAgeMs = times.length === 0 ? null : Math.max(0, this.#database.nowMs() - Math.min(...times));
    const behindDead = left.length - waiting.length;
    return {
      pending: waiting.length,
      isEstimate: false,
      oldestAgeMs,
      behindDead,
      dead: holds.filter(({ unmarked }) => unmarked === undefined).length,
    };
  }

  async prune(olderThanMs: number, rows: number): Promise<number> {
    const { tables } = this.#database;
    const beforeMs = this.#database.nowMs() - olderThanMs;
    const old = [...tables.closed.values()]
      .filter((row) => row.deliveredAtMs !== null && row.deliveredAtMs < beforeMs && this.#isMine(row))
      .slice(0, rows);
    tables.commit(() => {
      for (const { id } of old) tables.delete(tables.closed, id);
    });
    return old.length;
  }

  #pipeline(): MemoryPipelineTables {
    const pipeline = this.#database.tables.pipelines.get(this.#spec.name);
    if (pipeline === undefined) throw new RelayError("SCHEMA_MISSING", `Pipeline ${this.#spec.name} is not prepared.`);
    return pipeline;
  }

  #fence(grant: Grant): void {
    if (!this.#holdsGrant(grant)) throw fenced(`lane ${grant.lane} is not at epoch ${grant.epoch}`);
  }

  #holdsGrant(grant: Grant): boolean {
    return holdsGrant(this.#pipeline(), grant, this.#database.tables.timeline);
  }

  #laneState({ lane, owner, epoch, settledBatch }: MemoryLaneRow): LaneState {
    return { lane, owner, epoch, settledBatch, timeline: this.#database.tables.timeline };
  }

  /**
   * Raises the epoch, so that every later write of the former owner is fenced. The epoch also follows the clock: a
   * database that lost its last commits must not issue the same epoch twice.
   */
  #take(row: MemoryLaneRow, owner: string): Takeover {
    const { tables } = this.#database;
    const died = row.owner !== null && row.owner !== owner;
    if (row.owner !== null) this.durableClaims?.freeLane(row, row.owner, died);
    const nowMs = BigInt(this.#database.nowMs());
    const epoch = row.epoch + 1n > nowMs ? row.epoch + 1n : nowMs;
    const crashes = row.crashes + (died ? 1 : 0);
    tables.put(this.#pipeline().lanes, row.lane, { ...row, owner, epoch, crashes, sending: [] });
    const grant = { lane: row.lane, owner, epoch, timeline: tables.timeline };
    const { settledBatch, ledgeredBatch } = row;
    return { grant, settledBatch, ledgeredBatch, crashes, holds: this.#holdsOf(row.lane) };
  }

  #holdsOf(lane: number): Hold[] {
    const nowMs = this.#database.nowMs();
    return [...this.#pipeline().holds.values()].filter((hold) => hold.lane === lane).map((hold) => holdOf(hold, nowMs));
  }

  /** Which rows a run over these lanes shows, decided once by the state at its start. */
  #visibility({ grants, exceptKeys, exceptTypes }: RunRequest): (row: MemoryEventRow) => boolean {
    const pipeline = this.#pipeline();
    const lanes = new Set(grants.map(({ lane }) => lane));
    const keys = new Set(exceptKeys);
    for (const { parks, key } of pipeline.holds.values()) if (parks && key !== null) keys.add(key);
    const types = new Set(exceptTypes);
    if (types.size > 0) for (const key of this.#keysWaitingFor(types)) keys.add(key);
    const nowMs = this.#database.nowMs();
    return (row) =>
      row.state === "PENDING" &&
      (!this.#database.durableClaims || row.availableAtMs <= nowMs) &&
      this.#isMine(row) &&
      !types.has(row.type) &&
      !(row.key !== null && keys.has(row.key)) &&
      !pipeline.holds.has(row.id) &&
      lanes.has(laneOf(row, pipeline.lanes.size));
  }

  /** A row that is not available yet (the clock may have stepped back) keeps back the later events of its key. */
  #behindNobody(isShown: (row: MemoryEventRow) => boolean): (row: MemoryEventRow) => boolean {
    const nowMs = this.#database.nowMs();
    const waiting = new Set<string>();
    return (row) => {
      if (row.key === null) return isShown(row);
      if (row.state === "PENDING" && row.availableAtMs > nowMs && this.#isMine(row)) waiting.add(row.key);
      return !waiting.has(row.key) && isShown(row);
    };
  }

  #keysWaitingFor(types: ReadonlySet<string>): string[] {
    const waiting = [...this.#database.tables.open.values()].filter(({ type }) => types.has(type));
    return waiting.flatMap(({ key }) => (key === null ? [] : [key]));
  }

  #show(page: readonly MemoryEventRow[], grants: readonly Grant[]): readonly ClaimedEvent[] {
    const pipeline = this.#pipeline();
    const claims = this.durableClaims;
    const show = (row: MemoryEventRow) => claimedEvent(row, laneOf(row, pipeline.lanes.size), row.attempts, this.#spec);
    if (claims === null) return page.map(show);
    const owners = new Map(grants.filter((grant) => this.#holdsGrant(grant)).map((g) => [g.lane, g.owner]));
    return this.#database.tables.commit(() =>
      page.flatMap((row) => {
        const owner = owners.get(laneOf(row, pipeline.lanes.size));
        const claimed = owner === undefined ? null : claims.claim(row.id, owner);
        return claimed === null ? [] : [show(claimed)];
      }),
    );
  }
}

function fenced(what: string): RelayError {
  return new RelayError("FENCED", `The write was refused: ${what}.`);
}

function holdOf({ dueAtMs, errors: _, ...hold }: MemoryHoldRow, nowMs: number): Hold {
  return { ...hold, dueInMs: dueAtMs === null ? null : dueAtMs - nowMs };
}

/**
 * Rows that were claimed before come first, in the order of their first claim; the others follow in the order of
 * writing.
 */
function byPosition(left: MemoryEventRow, right: MemoryEventRow): number {
  const [a, b] = [left.formerClaim ?? Number.POSITIVE_INFINITY, right.formerClaim ?? Number.POSITIVE_INFINITY];
  return a === b ? left.sequence - right.sequence : a - b;
}

/** Late commits, replays and lost commits leave the table in an order other than that of writing. */
function inOrder(rows: MemoryEventRow[]): MemoryEventRow[] {
  const isSorted = rows.every((row, index) => index === 0 || byPosition(rows[index - 1]!, row) < 0);
  return isSorted ? rows : rows.sort(byPosition);
}
