import { reasonOf, tookNoEffect } from "../core/errors.ts";
import { InFlightSet } from "../core/in-flight.ts";
import { rotated } from "../core/rotated.ts";
import type { ClaimedEvent, LaneState, Run } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import { IdlePace } from "./idle-pace.ts";
import type { Lane } from "./lane.ts";
import { isAsLeft, strayed } from "./lane-check.ts";
import { Waker } from "./waker.ts";

/** Held events read by id at a time. */
const HEADS_MAX = 100;
/** Keys left out of a run because they have enough waiting; beyond these the engine itself passes them over. */
const EXCEPT_KEYS_MAX = 1_000;
/** A lane without room for so long is left out of the rest of the run, so that the others go on. */
const STALL_MS = 100;
/**
 * A run that gets no room for so long ends: its snapshot would hold back vacuum for nothing, and whatever others have
 * settled meanwhile would stay in the way of every look. Sooner when others wait for its connection.
 */
const ROOM_WAIT_MS = 1_000;

interface OpenRun {
  readonly number: number;
  readonly lanes: ReadonlyMap<number, Lane>;
  /** Lanes that get nothing more from this run. */
  readonly leftOut: Set<number>;
  /** Keys of which this run showed an event that was not taken: their later events must not overtake it. */
  readonly passedOver: Set<string>;
  hasRefused: boolean;
  rows: number;
  claimed: number;
}

/**
 * Finds events and claims them for the owned lanes. It reads by runs, one at a time: each sees everything that is not
 * settled, so what is in flight is dropped from its pages.
 */
export class Poller {
  readonly inFlight = new InFlightSet();
  readonly #context: PipelineContext;
  readonly #lanes: () => readonly Lane[];
  readonly #waker: Waker;
  readonly #pace: IdlePace;
  readonly #isInFlight = (id: string): boolean => this.inFlight.has(id);
  #runNumber = 0;
  #open: OpenRun | null = null;
  #runEndedMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<unknown> | null = null;
  #rounds = 0;
  #atRest = false;
  /** Raised by all news, so that a look that began before it does not conclude that nothing waits. */
  #news = 0;
  #isPaused = false;
  #stopped = false;

  constructor(context: PipelineContext, lanes: () => readonly Lane[]) {
    this.#context = context;
    this.#lanes = lanes;
    this.#waker = new Waker(context.clock);
    this.#pace = new IdlePace(context);
  }

  /** The first run whose snapshot is younger than now. */
  get nextRun(): number {
    return this.#runNumber + 1;
  }

  /** True when the last look at all lanes found nothing new, and nothing is in flight. */
  get isAtRest(): boolean {
    return (this.#atRest || this.#isPaused) && this.inFlight.size === 0;
  }

  /** While paused nothing new is claimed; what is in flight goes on. */
  set isPaused(isPaused: boolean) {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    this.expectEvents();
  }

  wake(): void {
    this.#waker.wake();
  }

  /** Like wake, for news that no one else told: the pause between polls starts anew. */
  expectEvents(): void {
    this.#pace.reset();
    this.#atRest = false;
    this.#news += 1;
    this.#waker.wake();
  }

  passOver(key: string | null): void {
    if (this.#open === null) return;
    this.#open.hasRefused = true;
    if (key !== null) this.#open.passedOver.add(key);
  }

  async betweenPages(): Promise<void> {
    while (this.#reading !== null) await this.#reading;
  }

  stop(): void {
    this.#stopped = true;
    this.#waker.wake();
  }

  /** Polls until stopped. Rejects when the source cannot be read; what was claimed stays claimed. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      const pauseMs = await this.#round();
      if (!this.#stopped) await this.#waker.pause(Math.min(pauseMs, this.#untilNextHeadMs()));
    }
  }

  /**
   * Held events that are due, then new ones. While a circuit is open it is the other way round: what failed before is a
   * bad probe, and goes only when there is nothing else.
   */
  async #round(): Promise<number> {
    this.#rounds += 1;
    if (this.#context.destination.isOpen) for (const lane of this.#lanes()) lane.handBackFailedHeads();
    // Nothing that waits in a lane depends on a single call that wakes it.
    for (const lane of this.#lanes()) lane.pump();
    if (this.#isPaused) {
      this.#probeWithFailed();
      return this.#context.timing.pollIntervalMs;
    }
    const isProbing = this.#context.destination.isProbing;
    if (!isProbing) await this.#claimDueHeads();
    const pauseMs = await this.#poll();
    if (isProbing) await this.#claimDueHeads();
    this.#probeWithFailed();
    return pauseMs;
  }

  #probeWithFailed(): void {
    if (this.#context.destination.admission().admits !== "probe") return;
    for (const lane of rotated(this.#lanes(), this.#rounds)) lane.pump(true);
  }

  /** One look at the source. Returns how long to wait before the next. */
  async #poll(): Promise<number> {
    const { destination, store, timing } = this.#context;
    const admission = destination.admission();
    if (admission.admits === "none") return Math.min(admission.waitMs, timing.pollIntervalMs);
    const lanes = this.#lanes().filter(hasRoomForRun);
    if (lanes.length === 0) return timing.pollIntervalMs;
    const startedMs = this.#now();
    const news = this.#news;
    // Lanes that read together share the reading; so those that are ready wait a little for the others.
    const waitMs = this.#runEndedMs + STALL_MS - startedMs;
    if (waitMs > 0 && this.#lanes().some((lane) => lane.isOpen && !lanes.includes(lane))) return waitMs;
    if (this.#pace.isQuiet && !(await this.#read(() => store.probe(lanes.map((lane) => lane.grant))))) {
      this.#atRest = lanes.length === this.#lanes().length && news === this.#news;
      return this.#pace.pauseAfter(startedMs);
    }
    if (this.#stopped || this.#isPaused) return timing.pollIntervalMs;
    // While the source was asked, claimed events may have gone on their way back to it.
    const ready = lanes.filter(hasRoomForRun);
    if (ready.length === 0) return timing.pollBusyMs;
    const run = await this.#oneRun(ready);
    if (run.claimed === 0) return this.#pace.pauseAfter(startedMs);
    this.#pace.reset();
    return timing.pollBusyMs;
  }

  async #oneRun(lanes: readonly Lane[]): Promise<OpenRun> {
    const { events, limits, name, store } = this.#context;
    const startedMs = this.#now();
    const news = this.#news;
    const acknowledged = new Map(lanes.map((lane) => [lane, lane.settledBatch]));
    const open: OpenRun = {
      number: ++this.#runNumber,
      lanes: new Map(lanes.map((lane) => [lane.grant.lane, lane])),
      leftOut: new Set(),
      passedOver: new Set(),
      hasRefused: false,
      rows: 0,
      claimed: 0,
    };
    this.#open = open;
    this.inFlight.beginRun(open.number);
    let run: Run | null = null;
    let exhausted = false;
    try {
      run = await this.#read(() => store.begin(this.#request(lanes)));
      this.#leaveOutStrayed(open, run.lanes, acknowledged);
      while (!exhausted && open.claimed < limits.runRowsMax && this.#now() - startedMs < limits.runMs) {
        const rows = await this.#roomForPage(open, run, startedMs);
        if (rows === 0) break;
        exhausted = !(await this.#read(() => this.#page(open, run!, rows)));
        if (store.durableClaims !== null && open.hasRefused) break;
        if (open.passedOver.size >= limits.runRowsMax) break;
      }
    } catch (error) {
      // A claim of unknown effect may have been written: only a take-over frees it.
      if (store.durableClaims !== null && !tookNoEffect(error)) for (const lane of lanes) lane.lost(error);
      throw error;
    } finally {
      await run?.end().catch(() => undefined);
      this.#open = null;
      this.#runEndedMs = this.#now();
      this.inFlight.endRun();
    }
    const hasNoNews = news === this.#news && open.leftOut.size === 0;
    this.#atRest = exhausted && hasNoNews && lanes.length === this.#lanes().length;
    const durationMs = this.#now() - startedMs;
    for (const recordId of run.repeated ?? []) events.emit("EventRepeated", { pipeline: name, recordId });
    events.emit("RunEnded", { pipeline: name, rows: open.rows, claimed: open.claimed, durationMs });
    return open;
  }

  #request(lanes: readonly Lane[]) {
    return {
      grants: lanes.map((lane) => lane.grant),
      exceptKeys: lanes.flatMap((lane) => lane.crowdedKeys()).slice(0, EXCEPT_KEYS_MAX),
      exceptTypes: this.#context.destination.blockedTypes(),
      isInFlight: this.#isInFlight,
    };
  }

  #leaveOutStrayed(open: OpenRun, seen: readonly LaneState[], acknowledged: ReadonlyMap<Lane, bigint>): void {
    const states = new Map(seen.map((state) => [state.lane, state]));
    for (const [number, lane] of open.lanes) {
      if (isAsLeft(lane.grant, acknowledged.get(lane)!, states.get(number))) continue;
      open.leftOut.add(number);
      lane.lost(strayed(this.#context.name, number));
    }
  }

  /** False at the end of the run. */
  async #page(open: OpenRun, run: Run, rows: number): Promise<boolean> {
    const { budget, limits, store } = this.#context;
    const bytes = budget.pageBytes(limits.inFlightBytesMax);
    const page = await run.next(rows, bytes, store.durableClaims === null ? undefined : roomsOf(open));
    const claimedMs = this.#now();
    const refused = new Map<Lane, string[]>();
    for (const event of page) {
      if (this.inFlight.excludes(event.id)) this.#seenAgain(open, event, refused);
      else if (this.#offer(open, event, claimedMs)) open.claimed += 1;
      else this.#refuse(open, event, refused);
    }
    for (const [lane, ids] of refused) lane.refuse(ids);
    for (const lane of open.lanes.values()) lane.pump();
    open.rows += page.length;
    return page.length > 0;
  }

  /** A durable claim of an event that is in flight was made after the event was handed back: it is undone too. */
  #seenAgain(open: OpenRun, event: ClaimedEvent, refused: Map<Lane, string[]>): void {
    if (this.#context.store.durableClaims !== null) this.#refuse(open, event, refused);
  }

  #offer(open: OpenRun, event: ClaimedEvent, claimedMs: number): boolean {
    const lane = open.lanes.get(event.lane);
    if (lane === undefined || open.leftOut.has(event.lane)) return false;
    if (event.key !== null && open.passedOver.has(event.key)) return false;
    return lane.offer(event, open.number, claimedMs);
  }

  #refuse(open: OpenRun, event: ClaimedEvent, refused: Map<Lane, string[]>): void {
    // Of a lane that is left out nothing comes any more; its keys need not be remembered one by one.
    if (event.key !== null && !open.leftOut.has(event.lane)) open.passedOver.add(event.key);
    open.hasRefused = true;
    const lane = open.lanes.get(event.lane);
    if (lane === undefined) return;
    const ids = refused.get(lane) ?? [];
    refused.set(lane, ids);
    ids.push(event.id);
  }

  /**
   * Waits until every lane of the run has room, but not long for a few that have none while others do. Returns the rows
   * of the next page; 0 ends the run.
   */
  async #roomForPage(open: OpenRun, run: Run, startedMs: number): Promise<number> {
    const { budget, destination, limits, timing } = this.#context;
    const waitingSinceMs = this.#now();
    for (;;) {
      const lanes = [...open.lanes.values()].filter((lane) => lane.isOpen && !open.leftOut.has(lane.grant.lane));
      const nowMs = this.#now();
      if (this.#stopped || this.#isPaused || lanes.length === 0 || nowMs - startedMs >= limits.runMs) return 0;
      if (destination.admission().admits === "none") return 0;
      if (nowMs - startedMs >= STALL_MS && this.#hasOutsider(lanes)) return 0;
      const full = lanes.filter((lane) => lane.room === 0);
      const hasBytes = budget.hasRoom(this.#bytes(), limits.inFlightBytesMax);
      if (hasBytes && full.length > 0 && full.length < lanes.length && nowMs - waitingSinceMs >= STALL_MS) {
        for (const lane of full) open.leftOut.add(lane.grant.lane);
        continue;
      }
      const rows = hasBytes && full.length === 0 ? this.#pageRows(lanes) : 0;
      if (rows > 0) return rows;
      if (nowMs - waitingSinceMs >= (run.isAwaited ? STALL_MS : ROOM_WAIT_MS)) return 0;
      await this.#waker.pause(Math.min(STALL_MS, timing.pollIntervalMs));
    }
  }

  /** A lane that has room and gets nothing from this run should not have to wait for its end. */
  #hasOutsider(lanes: readonly Lane[]): boolean {
    return this.#lanes().some((lane) => !lanes.includes(lane) && hasRoomForRun(lane));
  }

  /** One lane may get more than its share of a page, all together never more than the limit. */
  #pageRows(lanes: readonly Lane[]): number {
    const room = lanes.reduce((sum, lane) => sum + lane.room, 0);
    return Math.min(this.#context.limits.pageRows, room, this.#roomLeft());
  }

  #roomLeft(): number {
    return Math.max(0, this.#context.limits.inFlightEventsMax - this.inFlight.size);
  }

  async #claimDueHeads(): Promise<void> {
    const { destination, name, store, timing, events } = this.#context;
    if (destination.admission().admits === "none") return;
    for (const lane of this.#lanes()) {
      if (this.#isPaused) return;
      const ids = lane.holds.claimDue(this.#now(), this.#headsMax(lane));
      if (ids.length === 0) continue;
      try {
        const heads = await this.#read(() => store.claimHeads(lane.grant, ids));
        const laterMs = this.#now() + timing.pollIntervalMs;
        const known = new Set([...heads.events.map((event) => event.id), ...heads.gone]);
        for (const id of ids) if (!known.has(id)) lane.holds.postpone(id, laterMs);
        for (const recordId of heads.gone) events.emit("EventVanished", { pipeline: name, recordId });
        lane.releaseHolds(heads.gone);
        lane.offerHeads(heads.events);
      } catch (error) {
        for (const id of ids) lane.holds.postpone(id, this.#now() + timing.pollIntervalMs);
        if (store.durableClaims !== null && !tookNoEffect(error)) lane.lost(error);
        throw error;
      }
    }
  }

  /** Half of the room, and where there is room for one only every other time: new events must not starve. */
  #headsMax(lane: Lane): number {
    const room = this.#headRoom(lane);
    if (this.#context.destination.isOpen || lane.room === 0) return room;
    return room === 1 && lane.room === 1 ? this.#rounds % 2 : Math.ceil(room / 2);
  }

  /** While nothing but probes goes, one at a time: what waits here for its turn takes the place of better probes. */
  #headRoom(lane: Lane): number {
    const room = Math.min(HEADS_MAX, lane.headRoom, this.#roomLeft());
    return this.#context.destination.isOpen ? Math.min(room, lane.hasWaiting ? 0 : 1) : room;
  }

  /** Lanes without room do not count: a due event there would make the poller ask the source every millisecond. */
  #untilNextHeadMs(): number {
    const { destination, timing } = this.#context;
    if (this.#isPaused || destination.admission().admits === "none") return timing.pollIntervalMs;
    const dueMs = this.#lanes().map((lane) =>
      this.#headRoom(lane) > 0 ? lane.holds.nextDueMs() : Number.POSITIVE_INFINITY,
    );
    return Math.max(1, Math.min(...dueMs, Number.POSITIVE_INFINITY) - this.#now());
  }

  #bytes(): number {
    return this.#lanes().reduce((sum, lane) => sum + lane.claims.bytes, 0);
  }

  async #read<T>(call: () => Promise<T>): Promise<T> {
    const reading = call();
    const done = reading.catch((error: unknown) => reasonOf(error));
    this.#reading = done;
    try {
      return await reading;
    } finally {
      if (this.#reading === done) this.#reading = null;
    }
  }

  #now(): number {
    return this.#context.clock.monotonicMs();
  }
}

/** A claim that its lane has no room for would have to be undone. */
function roomsOf({ lanes, leftOut }: OpenRun): ReadonlyMap<number, number> {
  const taking = [...lanes.values()].filter((lane) => lane.isOpen && !leftOut.has(lane.grant.lane));
  return new Map(taking.map((lane) => [lane.grant.lane, lane.room]));
}

/** At least half of it, so that many small runs do not read the same rows again and again. */
function hasRoomForRun(lane: Lane): boolean {
  return lane.isReadyForRun && lane.room > 0 && lane.room >= lane.inFlight;
}
