import { type ErrorCode, isRelayError, reasonOf, stackOf } from "../core/errors.ts";
import type { InFlightSet } from "../core/in-flight.ts";
import { rotated } from "../core/rotated.ts";
import type { LaneState, Survey } from "../ports/queue-store.ts";
import type { Chore } from "./chores/chore.ts";
import { pipelineChores } from "./chores/pipeline-chores.ts";
import type { PipelineContext } from "./context.ts";
import type { Destination } from "./destination.ts";
import { fairShare } from "./fair-share.ts";
import type { InstanceLease } from "./instance-lease.ts";
import { Lane } from "./lane.ts";
import { isUnchanged, laneMoved } from "./lane-check.ts";
import type { CircuitScope } from "./lane-holds.ts";
import type { LaneHost } from "./lane-host.ts";
import type { Entry } from "./lane-queue.ts";
import { releaseRest } from "./lane-release.ts";
import { LaneRetakes } from "./lane-retakes.ts";
import { OperatorChanges } from "./operator-changes.ts";
import { Poller } from "./poller.ts";
import { RateGate } from "./rate-gate.ts";
import { marking, opening, SourceHealth, settling } from "./source-health.ts";
import { UnansweredSends } from "./unanswered-sends.ts";
import { untilAborted } from "./until-aborted.ts";
import { Waker } from "./waker.ts";

/**
 * A pipeline during one lease of this instance: its lanes, its poller, its chores. Nothing of it outlives the lease:
 * after that, another instance may own the lanes.
 */
export class Session implements LaneHost {
  readonly #context: PipelineContext;
  readonly #lease: InstanceLease;
  readonly #lanes = new Map<number, Lane>();
  /** Lanes that are ending. They must not be taken again before that: their events may still be on the wire. */
  readonly #closing = new Map<number, Promise<void>>();
  readonly #retakes: LaneRetakes;
  readonly unanswered = new UnansweredSends();
  readonly limit: RateGate;
  readonly #poller: Poller;
  readonly #chores: Chore[];
  readonly #balanceWaker: Waker;
  readonly #stopping = new AbortController();
  readonly #unsubscribe: () => void;
  readonly #health: SourceHealth;
  readonly #changes: OperatorChanges;
  #wakes = 0;
  /** As of the last survey: lanes that no living instance owned, and lanes that other instances owned. */
  #unserved = Number.POSITIVE_INFINITY;
  #elsewhere = 0;
  #laneCount = 0;

  constructor(context: PipelineContext, lease: InstanceLease, retentionMs: number | null) {
    this.#context = context;
    this.#lease = lease;
    this.#retakes = new LaneRetakes(context);
    this.#health = new SourceHealth(context);
    this.#poller = new Poller(
      context,
      () => [...this.#lanes.values()],
      () => this.#health.recovered("poll"),
    );
    this.#balanceWaker = new Waker(context.clock);
    const { signal } = lease;
    this.limit = new RateGate({ clock: context.clock, signal, wake: () => this.#pumpAll() });
    this.#changes = new OperatorChanges(context, this.#poller, this.limit, () => this.lanes());
    this.#chores = pipelineChores(context, { lanes: () => [...this.#lanes.values()], owner: lease.id, retentionMs });
    this.#unsubscribe = context.destination.onWake(() => this.#destinationWoke());
    lease.signal.addEventListener("abort", () => this.#stopNow(), { once: true });
  }

  /** Serves the pipeline until stopped or until the lease ends. Never rejects. */
  async run(): Promise<void> {
    await this.#retry("prepare", () => this.#prepare());
    for (const chore of this.#chores) chore.start();
    const unwatch = this.#context.store.watch?.(() => this.#poller.expectEvents());
    await Promise.all([this.#balanceLoop(), this.#pollLoop()]);
    unwatch?.();
    await Promise.all(this.#chores.map((chore) => chore.stop()));
    this.#unsubscribe();
    await Promise.all(this.#closing.values());
  }

  /** Stops claiming and finishes what is on the wire. Resolves when the lanes are released. */
  async stop(): Promise<void> {
    this.#stopNow();
    await Promise.all([...this.#lanes.values()].map((lane) => this.#leave(lane)));
    await Promise.all(this.#closing.values());
  }

  /** Aborts everything in flight. Resolves when nothing of it can arrive any more. */
  async abandon(): Promise<void> {
    this.#stopNow();
    await Promise.all([...this.#lanes.values()].map((lane) => lane.abandon()));
    await Promise.all(this.#closing.values());
  }

  /**
   * For a process that ends: releases the lanes that it still owns in the database, once nothing is on the wire. Never
   * rejects.
   */
  async releaseRest(): Promise<void> {
    await releaseRest(this.#context.store, this.#lease.id).catch((error: unknown) => this.#health.reportOnce(error));
  }

  /** Checks at once whether lanes have become free. */
  balanceSoon(): void {
    this.#balanceWaker.wake();
  }

  get destination(): Destination {
    return this.#context.destination;
  }

  lanes(): readonly Lane[] {
    return [...this.#lanes.values()];
  }

  /** True when every event that this instance can see is delivered or held. */
  get isAtRest(): boolean {
    if (this.#health.isBroken || this.#closing.size > 0 || this.#unserved > 0) return false;
    return this.#lanes.size === 0 || this.#poller.isAtRest;
  }

  /** True when other instances own lanes of this pipeline; their pending events are unknown here. */
  get isShared(): boolean {
    return this.#elsewhere > 0;
  }

  /** The pending events of the pipeline, also in lanes of other instances. Queries the source. */
  async waiting(): Promise<number> {
    return (await this.#context.store.backlog()).pending;
  }

  get name(): string {
    return this.#context.name;
  }

  /** Lanes that no living instance owned at the last survey; infinite before the first one. */
  get unserved(): number {
    return this.#unserved;
  }

  /** True while an operator has paused the pipeline, as of the last survey. */
  get isPaused(): boolean {
    return this.#changes.isPaused;
  }

  /** True when the source has been broken for this long. */
  isBrokenFor(ms: number): boolean {
    return this.#health.isBrokenFor(ms);
  }

  /** Polls at once: the source may have new events. */
  expectEvents(): void {
    this.#poller.expectEvents();
  }

  // LaneHost

  get inFlight(): InFlightSet<Entry> {
    return this.#poller.inFlight;
  }

  passOver(key: string | null): void {
    this.#poller.passOver(key);
  }

  wake(): void {
    this.#poller.wake();
  }

  isAlive(): boolean {
    return this.#lease.isAlive();
  }

  laneShare(): number {
    const { limits, store } = this.#context;
    const share = Math.max(1, Math.floor(limits.inFlightEventsMax / Math.max(1, this.#lanes.size)));
    // A durable claim blocks other relays, also for a time after this process dies: claim no more than is sent soon.
    return store.durableClaims === null ? share : Math.min(share, limits.batchSize);
  }

  betweenPages(): Promise<void> {
    return this.#poller.betweenPages();
  }

  nextRun(): number {
    return this.#poller.nextRun;
  }

  opened(lane: Lane): void {
    this.#health.recovered(opening(lane.grant.lane));
    this.#poller.expectEvents();
  }

  settled(lane: Lane): void {
    this.#retakes.settled(lane.grant.lane);
    this.#health.recovered(settling(lane.grant.lane));
  }

  refused(lane: Lane, error: unknown): void {
    this.#health.report(settling(lane.grant.lane), error);
  }

  unmarked(lane: number, error: unknown): void {
    if (error === null) this.#health.recovered(marking(lane));
    else this.#health.report(marking(lane), error);
  }

  /** The lane is void. The session takes it over again, with a new epoch, once nothing of it is on the wire. */
  lost(lane: Lane, error: unknown): void {
    const { events, name } = this.#context;
    const code = isRelayError(error) ? error.code : "DATABASE_UNREACHABLE";
    const report = { code, reason: reasonOf(error), stack: stackOf(error) };
    events.emit("LaneFailed", { pipeline: name, lane: lane.grant.lane, ...report });
    if (NEEDS_OPERATOR.has(code)) this.#health.report(opening(lane.grant.lane), error);
    this.#unserved += 1;
    this.#retakes.lost(lane.grant.lane);
    void this.#close(lane, lane.abandon());
  }

  /** Releases a lane in good order. */
  #leave(lane: Lane): Promise<void> {
    return this.#closing.get(lane.grant.lane) ?? this.#close(lane, lane.leave());
  }

  /**
   * Waits for the end of a lane. A lane that is leaving may also be lost: then it is gone when both are over. Only the
   * last ending removes it, so that a lane which has replaced it in the meantime stays.
   */
  #close(lane: Lane, ending: Promise<void>): Promise<void> {
    const number = lane.grant.lane;
    const closing: Promise<void> = Promise.all([this.#closing.get(number), ending])
      .then(() => undefined)
      .catch((error: unknown) => this.#health.reportOnce(error))
      .finally(() => {
        if (this.#closing.get(number) !== closing) return;
        this.#closing.delete(number);
        if (this.#lanes.get(number) === lane) this.#lanes.delete(number);
        this.#health.recovered(settling(number));
        this.#health.recovered(marking(number));
        this.#balanceWaker.wake();
      });
    this.#closing.set(number, closing);
    return closing;
  }

  /** Surveys the pipeline regularly: applies the operator's changes, checks the owned lanes and rebalances. */
  async #balanceLoop(): Promise<void> {
    const { timing } = this.#context;
    while (!this.#isOver) {
      let pauseMs = timing.balanceMs;
      await this.#retry("balance", async () => {
        // Read before the survey: a settle that is acknowledged later must not look like a lost commit.
        const acknowledged = new Map(this.lanes().map((lane) => [lane, lane.settledBatch]));
        const survey = await this.#context.store.survey();
        // An instance that owns no lane, or whose destination is down, asks for nothing else.
        this.#context.events.emit("SourceAnswered", { pipeline: this.#context.name, pollMs: null });
        if (this.#isOver) return;
        this.#changes.apply(survey);
        this.#checkOwned(survey.lanes, acknowledged);
        if (survey.lanes.length !== this.#laneCount) await this.#prepare();
        await this.#balance(survey);
        await this.#changes.applyHoldChanges(survey);
        // The only instance need not survey often: the reaper reports free lanes, and only an operator changes
        // anything.
        const alone = survey.instances.length <= 1 && survey.pause === null && !this.#changes.expectsHoldChanges;
        if (alone) pauseMs = Math.max(pauseMs, Math.min(timing.leaseMs / 2, OPERATOR_CHANGE_MS));
        const retakeMs = this.#retakes.untilNextMs((lane) => this.#lanes.has(lane));
        pauseMs = Math.min(pauseMs, retakeMs);
      });
      if (!this.#isOver) await this.#balanceWaker.pause(pauseMs);
    }
  }

  /** Releases lanes beyond this instance's share and takes free lanes up to it. */
  async #balance(survey: Survey): Promise<void> {
    const { name } = this.#context;
    const isWanted = !survey.pause?.handsOver;
    const share = isWanted ? fairShare(survey.instances, this.#lease.id, survey.lanes.length, name) : 0;
    const owned = [...this.#lanes.values()].filter((lane) => !lane.isLeaving);
    for (const lane of owned.slice(share)) void this.#leave(lane);
    const living = new Set(survey.instances);
    const free = survey.lanes.filter((state) => this.#isFree(state, living));
    // Takes lanes that the database still lists as ours in any case, even beyond the share: no other instance can take
    // them, and once they are in good order they can be released.
    const ours = free.filter(({ owner }) => owner === this.#lease.id);
    const others = free
      .filter(({ owner }) => owner !== this.#lease.id)
      .slice(0, Math.max(0, share - owned.length - ours.length));
    if (ours.length + others.length > 0) await this.#take([...ours, ...others].map(({ lane }) => lane));
    const isServed = ({ lane, owner }: LaneState): boolean =>
      this.#lanes.has(lane) || (owner !== null && owner !== this.#lease.id && living.has(owner));
    this.#unserved = isWanted ? survey.lanes.filter((state) => !isServed(state)).length : 0;
    this.#elsewhere = survey.lanes.length - this.#unserved - this.#lanes.size;
  }

  /** True when this instance may take the lane over now. */
  #isFree(state: LaneState, living: ReadonlySet<string>): boolean {
    if (this.#lanes.has(state.lane) || this.#closing.has(state.lane)) return false;
    if (this.#retakes.isPausing(state.lane)) return false;
    return state.owner === null || state.owner === this.#lease.id || !living.has(state.owner);
  }

  /**
   * Voids owned lanes that another instance has taken, or whose progress the database has lost. Idle lanes notice it
   * only here.
   */
  #checkOwned(states: readonly LaneState[], acknowledged: ReadonlyMap<Lane, bigint>): void {
    const seen = new Map(states.map((state) => [state.lane, state]));
    for (const [number, lane] of [...this.#lanes]) {
      const settledBatch = acknowledged.get(lane);
      if (settledBatch === undefined || this.#closing.has(number)) continue;
      if (!isUnchanged(lane.grant, settledBatch, seen.get(number))) lane.lost(laneMoved(this.#context.name, number));
    }
  }

  async #take(lanes: readonly number[]): Promise<void> {
    const { events, name, store } = this.#context;
    const takeovers = await store.takeOver(this.#lease.id, lanes);
    for (const takeover of takeovers) {
      const { lane, epoch } = takeover.grant;
      // Stopped during the take-over: no one would serve the lane until the lease ends.
      if (this.#isOver) {
        await store.release(takeover.grant);
        continue;
      }
      const taken = new Lane(this.#context, this, takeover);
      this.#lanes.set(lane, taken);
      events.emit("LaneTaken", { pipeline: name, lane, epoch, crashes: takeover.crashes });
      taken.open();
    }
    if (takeovers.length > 0) this.#poller.expectEvents();
  }

  /**
   * Polls until the session is over. After a failure it prepares the source first, because the table may have changed.
   * That alone ends no outage: a locked table can be prepared, but not read.
   */
  async #pollLoop(): Promise<void> {
    while (!this.#isOver) {
      await this.#retry("poll", async () => {
        if (this.#health.isFailing("poll")) await this.#prepare();
        await untilAborted(this.#poller.run(), this.#lease.signal);
      });
    }
  }

  async #prepare(): Promise<void> {
    this.#laneCount = (await this.#context.store.prepare()).lanes;
  }

  #retry(what: string, work: () => Promise<void>): Promise<void> {
    const isOver = () => this.#isOver;
    return this.#health.retry(what, work, {
      isOver,
      ended: this.#lease.signal,
      stopping: this.#stopping.signal,
    });
  }

  /** The destination may take events again: set-aside events become due, and the lanes send. */
  #destinationWoke(): void {
    const { clock, destination } = this.#context;
    const isAlive = ({ topic }: CircuitScope): boolean => !destination.isClosedTo(topic);
    for (const lane of this.lanes()) lane.holds.recallSetAside(clock.monotonicMs(), isAlive);
    this.#pumpAll();
  }

  /** Pumps the lanes in a different order each time, so that no lane is always the last. */
  #pumpAll(): void {
    for (const lane of rotated(this.lanes(), this.#wakes++)) lane.pump();
    this.#poller.wake();
  }

  get #isOver(): boolean {
    return this.#stopping.signal.aborted || !this.#lease.isAlive();
  }

  #stopNow(): void {
    this.#stopping.abort();
    this.#poller.stop();
    this.#balanceWaker.wake();
    for (const chore of this.#chores) void chore.stop();
  }
}

/** A pause by an operator takes effect within this time. */
const OPERATOR_CHANGE_MS = 3_000;

/**
 * Errors that only an operator can fix. Until then the lane is taken over and lost repeatedly, and delivers nothing.
 */
const NEEDS_OPERATOR: ReadonlySet<ErrorCode> = new Set([
  "IDENTITY_CHANGED",
  "LEDGER_GAP",
  "LEDGER_UNFIT",
  "TRANSACTIONS_REFUSED",
]);
