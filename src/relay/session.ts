import { type ErrorCode, isRelayError, reasonOf, stackOf } from "../core/errors.ts";
import type { InFlightSet } from "../core/in-flight.ts";
import { rotated } from "../core/rotated.ts";
import type { LaneState, Survey } from "../ports/queue-store.ts";
import type { Chore } from "./chores/chore.ts";
import { pipelineChores } from "./chores/pipeline-chores.ts";
import type { PipelineContext } from "./context.ts";
import type { Destination } from "./destination.ts";
import { fairShare } from "./fair-share.ts";
import type { Circle } from "./hold-book.ts";
import { Lane } from "./lane.ts";
import { isAsLeft, strayed } from "./lane-check.ts";
import type { LaneHost } from "./lane-host.ts";
import { releaseRest } from "./lane-release.ts";
import { LaneRetakes } from "./lane-retakes.ts";
import { Poller } from "./poller.ts";
import { RateGate } from "./rate-gate.ts";
import { Silences } from "./silences.ts";
import type { Tenure } from "./tenure.ts";
import { opening, settling, Troubles } from "./troubles.ts";
import { untilAborted } from "./until-aborted.ts";
import { Waker } from "./waker.ts";
import { Wishes } from "./wishes.ts";

/** A pipeline during one tenure of this instance: its lanes, its poller, its chores. Nothing of it outlives the tenure. */
export class Session implements LaneHost {
  readonly #context: PipelineContext;
  readonly #tenure: Tenure;
  readonly #lanes = new Map<number, Lane>();
  /** Lanes on their way out: not to be taken again before they are gone. */
  readonly #closing = new Map<number, Promise<void>>();
  readonly #retakes: LaneRetakes;
  readonly silences = new Silences();
  readonly limit: RateGate;
  readonly #poller: Poller;
  readonly #chores: Chore[];
  readonly #balanceWaker: Waker;
  readonly #stopping = new AbortController();
  readonly #unsubscribe: () => void;
  readonly #troubles: Troubles;
  readonly #wishes: Wishes;
  #wakes = 0;
  /** Lanes that neither we nor any other living instance had at the last look, and those that others had. */
  #unserved = Number.POSITIVE_INFINITY;
  #elsewhere = 0;
  #laneCount = 0;

  constructor(context: PipelineContext, tenure: Tenure, retentionMs: number | null) {
    this.#context = context;
    this.#tenure = tenure;
    this.#retakes = new LaneRetakes(context);
    this.#troubles = new Troubles(context);
    this.#poller = new Poller(context, () => [...this.#lanes.values()]);
    this.#balanceWaker = new Waker(context.clock);
    const { signal } = tenure;
    this.limit = new RateGate({ clock: context.clock, signal, wake: () => this.#pumpAll() });
    this.#wishes = new Wishes(context, this.#poller, this.limit, () => this.lanes());
    this.#chores = pipelineChores(context, { lanes: () => [...this.#lanes.values()], owner: tenure.id, retentionMs });
    this.#unsubscribe = context.destination.onWake(() => this.#destinationWoke());
    tenure.signal.addEventListener("abort", () => this.#stopNow(), { once: true });
  }

  /** Serves the pipeline until stopped or until the tenure ends. Never rejects. */
  async run(): Promise<void> {
    await this.#persist("prepare", () => this.#prepare());
    for (const chore of this.#chores) chore.start();
    const unwatch = this.#context.store.watch?.(() => this.#poller.expectEvents());
    await Promise.all([this.#balanceLoop(), this.#pollLoop()]);
    unwatch?.();
    await Promise.all(this.#chores.map((chore) => chore.stop()));
    this.#unsubscribe();
    await Promise.all(this.#closing.values());
  }

  /** Stops claiming, finishes what is on the wire, hands the lanes over. Resolves when they are released. */
  async stop(): Promise<void> {
    this.#stopNow();
    await Promise.all([...this.#lanes.values()].map((lane) => this.#leave(lane)));
    await Promise.all(this.#closing.values());
  }

  /** Gives up what is in flight. Resolves when nothing of it can arrive any more. */
  async abandon(): Promise<void> {
    this.#stopNow();
    await Promise.all([...this.#lanes.values()].map((lane) => lane.abandon()));
    await Promise.all(this.#closing.values());
  }

  /** For a process that ends: what is still under its name, though nothing of it is on the wire. Never rejects. */
  async releaseRest(): Promise<void> {
    await releaseRest(this.#context.store, this.#tenure.id).catch((error: unknown) => this.#troubles.tell(error));
  }

  /** Looks at once whether lanes became free. */
  balanceSoon(): void {
    this.#balanceWaker.wake();
  }

  get destination(): Destination {
    return this.#context.destination;
  }

  lanes(): readonly Lane[] {
    return [...this.#lanes.values()];
  }

  /** True when all that this instance can see is delivered or held. */
  get isAtRest(): boolean {
    if (this.#troubles.any || this.#closing.size > 0 || this.#unserved > 0) return false;
    return this.#lanes.size === 0 || this.#poller.isAtRest;
  }

  /** True when others have lanes of this pipeline: what waits there is not known here. */
  get isShared(): boolean {
    return this.#elsewhere > 0;
  }

  /** Events that wait, also in the lanes of others. Asks the source. */
  async waiting(): Promise<number> {
    return (await this.#context.store.backlog()).pending;
  }

  get name(): string {
    return this.#context.name;
  }

  /** True while a person has stopped it, as far as the last look told. */
  get isPaused(): boolean {
    return this.#wishes.isPaused;
  }

  /** True when something could not be done for so long. */
  isBrokenFor(ms: number): boolean {
    return this.#troubles.lastFor(ms);
  }

  expectEvents(): void {
    this.#poller.expectEvents();
  }

  // What the lanes ask for

  get inFlight(): InFlightSet {
    return this.#poller.inFlight;
  }

  passOver(key: string | null): void {
    this.#poller.passOver(key);
  }

  wake(): void {
    this.#poller.wake();
  }

  isAlive(): boolean {
    return this.#tenure.isAlive();
  }

  laneShare(): number {
    const { limits, store } = this.#context;
    const share = Math.max(1, Math.floor(limits.inFlightEventsMax / Math.max(1, this.#lanes.size)));
    // A durable claim keeps others from the row, and is lost with this process: no more of them than are sent soon.
    return store.durableClaims === null ? share : Math.min(share, limits.batchSize);
  }

  betweenPages(): Promise<void> {
    return this.#poller.betweenPages();
  }

  nextRun(): number {
    return this.#poller.nextRun;
  }

  opened(lane: Lane): void {
    this.#troubles.recovered(opening(lane.grant.lane));
    this.#poller.expectEvents();
  }

  settled(lane: Lane): void {
    this.#retakes.settled(lane.grant.lane);
    this.#troubles.recovered(settling(lane.grant.lane));
  }

  refused(lane: Lane, error: unknown): void {
    this.#troubles.report(settling(lane.grant.lane), error);
  }

  unmarked(lane: number, error: unknown): void {
    if (error === null) this.#troubles.recovered(marking(lane));
    else this.#troubles.report(marking(lane), error);
  }

  /** The lane is void. It is taken over anew, with a new epoch, once nothing of it is on the wire. */
  lost(lane: Lane, error: unknown): void {
    const { events, name } = this.#context;
    const code = isRelayError(error) ? error.code : "DATABASE_UNREACHABLE";
    const told = { code, reason: reasonOf(error), stack: stackOf(error) };
    events.emit("LaneFailed", { pipeline: name, lane: lane.grant.lane, ...told });
    if (NEEDS_A_PERSON.has(code)) this.#troubles.report(opening(lane.grant.lane), error);
    this.#unserved += 1;
    this.#retakes.lost(lane.grant.lane);
    void this.#close(lane, lane.abandon());
  }

  #leave(lane: Lane): Promise<void> {
    return this.#closing.get(lane.grant.lane) ?? this.#close(lane, lane.leave());
  }

  /**
   * Waits for the end of a lane. A lane on its way out may be lost on top of that: then it is gone when both are over,
   * and what was put in its place meanwhile is not touched.
   */
  #close(lane: Lane, ending: Promise<void>): Promise<void> {
    const number = lane.grant.lane;
    const closing: Promise<void> = Promise.all([this.#closing.get(number), ending])
      .then(() => undefined)
      .catch((error: unknown) => this.#troubles.tell(error))
      .finally(() => {
        if (this.#closing.get(number) !== closing) return;
        this.#closing.delete(number);
        if (this.#lanes.get(number) === lane) this.#lanes.delete(number);
        this.#troubles.recovered(settling(number));
        this.#troubles.recovered(marking(number));
        this.#balanceWaker.wake();
      });
    this.#closing.set(number, closing);
    return closing;
  }

  async #balanceLoop(): Promise<void> {
    const { timing } = this.#context;
    while (!this.#isOver) {
      let pauseMs = timing.balanceMs;
      await this.#persist("balance", async () => {
        const acknowledged = new Map(this.lanes().map((lane) => [lane, lane.settledBatch]));
        const survey = await this.#context.store.survey();
        if (this.#isOver) return;
        this.#wishes.heed(survey);
        this.#checkOwned(survey.lanes, acknowledged);
        if (survey.lanes.length !== this.#laneCount) await this.#prepare();
        await this.#balance(survey);
        await this.#wishes.lookAtHolds(survey);
        // Nobody to share with: what changes is told by the reaper or found at the next look, or is a person's wish.
        const alone = survey.instances.length <= 1 && survey.pause === null && !this.#wishes.expectsHolds;
        if (alone) pauseMs = Math.max(pauseMs, Math.min(timing.leaseMs / 2, WISHES_MS));
        const retakeMs = this.#retakes.untilNextMs((lane) => this.#lanes.has(lane));
        pauseMs = Math.min(pauseMs, retakeMs);
      });
      if (!this.#isOver) await this.#balanceWaker.pause(pauseMs);
    }
  }

  async #balance(survey: Survey): Promise<void> {
    const { name } = this.#context;
    const isWanted = !survey.pause?.handsOver;
    const share = isWanted ? fairShare(survey.instances, this.#tenure.id, survey.lanes.length, name) : 0;
    const owned = [...this.#lanes.values()].filter((lane) => !lane.isLeaving);
    for (const lane of owned.slice(share)) void this.#leave(lane);
    const living = new Set(survey.instances);
    const free = survey.lanes.filter((state) => this.#isFree(state, living));
    // What the database still calls ours is taken in any case, also beyond the share: nobody else can, and a lane that
    // is in good order can be handed over.
    const ours = free.filter(({ owner }) => owner === this.#tenure.id);
    const others = free
      .filter(({ owner }) => owner !== this.#tenure.id)
      .slice(0, Math.max(0, share - owned.length - ours.length));
    if (ours.length + others.length > 0) await this.#take([...ours, ...others].map(({ lane }) => lane));
    const isServed = ({ lane, owner }: LaneState): boolean =>
      this.#lanes.has(lane) || (owner !== null && owner !== this.#tenure.id && living.has(owner));
    this.#unserved = isWanted ? survey.lanes.filter((state) => !isServed(state)).length : 0;
    this.#elsewhere = survey.lanes.length - this.#unserved - this.#lanes.size;
  }

  #isFree(state: LaneState, living: ReadonlySet<string>): boolean {
    if (this.#lanes.has(state.lane) || this.#closing.has(state.lane)) return false;
    if (this.#retakes.isPausing(state.lane)) return false;
    return state.owner === null || state.owner === this.#tenure.id || !living.has(state.owner);
  }

  /** Also when nothing is to be read a lane may have been taken, or stepped back with a database that was restored. */
  #checkOwned(states: readonly LaneState[], acknowledged: ReadonlyMap<Lane, bigint>): void {
    const seen = new Map(states.map((state) => [state.lane, state]));
    for (const [number, lane] of [...this.#lanes]) {
      const settledBatch = acknowledged.get(lane);
      if (settledBatch === undefined || this.#closing.has(number)) continue;
      if (!isAsLeft(lane.grant, settledBatch, seen.get(number))) lane.lost(strayed(this.#context.name, number));
    }
  }

  async #take(lanes: readonly number[]): Promise<void> {
    const { events, name, store } = this.#context;
    const takeovers = await store.takeOver(this.#tenure.id, lanes);
    for (const takeover of takeovers) {
      const { lane, epoch } = takeover.grant;
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

  async #pollLoop(): Promise<void> {
    while (!this.#isOver) {
      await this.#persist("poll", async () => {
        if (this.#troubles.has("poll")) {
          await this.#prepare();
          this.#troubles.recovered("poll");
        }
        await untilAborted(this.#poller.run(), this.#tenure.signal);
      });
    }
  }

  async #prepare(): Promise<void> {
    this.#laneCount = (await this.#context.store.prepare()).lanes;
  }

  #persist(what: string, work: () => Promise<void>): Promise<void> {
    const isOver = () => this.#isOver;
    return this.#troubles.persist(what, work, {
      isOver,
      ended: this.#tenure.signal,
      stopping: this.#stopping.signal,
    });
  }

  #destinationWoke(): void {
    const { clock, destination } = this.#context;
    const isAlive = ({ topic }: Circle): boolean => !destination.isClosedTo(topic);
    for (const lane of this.lanes()) lane.holds.recallSetAside(clock.monotonicMs(), isAlive);
    this.#pumpAll();
  }

  /** In a different order each time, so that no lane is always the last. */
  #pumpAll(): void {
    for (const lane of rotated(this.lanes(), this.#wakes++)) lane.pump();
    this.#poller.wake();
  }

  get #isOver(): boolean {
    return this.#stopping.signal.aborted || !this.#tenure.isAlive();
  }

  #stopNow(): void {
    this.#stopping.abort();
    this.#poller.stop();
    this.#balanceWaker.wake();
    for (const chore of this.#chores) void chore.stop();
  }
}

/** A person who pauses a pipeline sees it stop within this time. */
const WISHES_MS = 3_000;

/** The lane is taken again and again until somebody has put it right; nothing of it is delivered until then. */
const NEEDS_A_PERSON: ReadonlySet<ErrorCode> = new Set([
  "IDENTITY_CHANGED",
  "LEDGER_GAP",
  "LEDGER_UNFIT",
  "TRANSACTIONS_REFUSED",
]);

function marking(lane: number): string {
  return `mark rows of lane ${lane}`;
}
