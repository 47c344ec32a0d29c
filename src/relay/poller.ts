import { reasonOf, tookNoEffect } from "../core/errors.ts";
import { InFlightSet } from "../core/in-flight.ts";
import { rotated } from "../core/rotated.ts";
import type { ClaimedEvent, LaneState, Run } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import { IdlePace } from "./idle-pace.ts";
import type { Lane } from "./lane.ts";
import { isUnchanged, laneMoved } from "./lane-check.ts";
import type { Entry } from "./lane-queue.ts";
import { bytesOf, hasRoomForRun, roomsOf } from "./lane-rooms.ts";
import { type OpenRun, openRun } from "./open-run.ts";
import { Waker } from "./waker.ts";

/** Held events read by id at a time. */
const HEADS_MAX = 100;
/** Of these, events whose size is not known yet, as after a replay: they may be large. */
const UNKNOWN_HEADS_MAX = 16;
/** Keys that a run leaves out because they have enough events here. Beyond these, the engine skips their events. */
const EXCEPT_KEYS_MAX = 1_000;
/** A lane without room for this long is left out of the rest of the run, so that the others can continue. */
const STALL_MS = 100;
/**
 * A run that gets no room for this long ends: its snapshot would hold back vacuum for nothing, and rows that were
 * settled in the meantime would slow every query down. It ends sooner when another run waits for its connection.
 */
const ROOM_WAIT_MS = 1_000;

/**
 * Finds events and claims them for the owned lanes. It reads in runs, one at a time. A run returns everything that is
 * not settled, so the poller drops events in flight from its pages.
 */
export class Poller {
  readonly inFlight = new InFlightSet<Entry>();
  readonly #context: PipelineContext;
  readonly #lanes: () => readonly Lane[];
  readonly #works: () => void;
  readonly #waker: Waker;
  readonly #pace: IdlePace;
  readonly #isInFlight = (id: string): boolean => this.inFlight.has(id);
  #runNumber = 0;
  #open: OpenRun | null = null;
  #runEndedMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<unknown> | null = null;
  #rounds = 0;
  /** Lanes that last read held events, and have not polled for new ones since. */
  readonly #readHeadsLast = new WeakSet<Lane>();
  /** The next search for held events begins behind the lane that found some: it could take all room every time. */
  #headsFrom = 0;
  #atRest = false;
  /** Counts wake-ups, so that a poll that began before one does not conclude that the source is empty. */
  #wakeUps = 0;
  #isPaused = false;
  #stopped = false;

  /** Calls `works` whenever the source was read, or need not be, without an error. */
  constructor(context: PipelineContext, lanes: () => readonly Lane[], works: () => void) {
    this.#context = context;
    this.#lanes = lanes;
    this.#works = works;
    this.#waker = new Waker(context.clock);
    this.#pace = new IdlePace(context);
  }

  /** The number of the first run whose snapshot is taken after now. */
  get nextRun(): number {
    return this.#runNumber + 1;
  }

  /** True when the last poll of all lanes found nothing new, and nothing is in flight. */
  get isAtRest(): boolean {
    return (this.#atRest || this.#isPaused) && this.inFlight.size === 0;
  }

  /** A paused poller claims nothing new; events in flight continue. */
  set isPaused(isPaused: boolean) {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    this.expectEvents();
  }

  /** Cuts the pause short, because there may be room or a due hold. */
  wake(): void {
    this.#waker.wake();
  }

  /** Cuts the pause short, because the source may have events that no run has returned. Idle pauses start again. */
  expectEvents(): void {
    this.#pace.reset();
    this.#atRest = false;
    this.#wakeUps += 1;
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

  /** Polls until stopped. Rejects when the source cannot be read; claimed events stay claimed. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      const pauseMs = await this.#round();
      this.#works();
      if (!this.#stopped) await this.#waker.pause(Math.min(pauseMs, this.#untilNextHeadMs()));
    }
  }

  /**
   * Reads held events that are due, then new ones. While a circuit is open the order is reversed: an event that failed
   * before is a bad probe, and is sent only when there is no other.
   */
  async #round(): Promise<number> {
    this.#rounds += 1;
    if (this.#context.destination.isOpen) for (const lane of this.#lanes()) lane.handBackFailedHeads();
    // Pumps every lane in each round, so that no event depends on a single wake-up call.
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

  /** Polls the source once for new events. Returns the pause before the next poll. */
  async #poll(): Promise<number> {
    const { destination, store, timing } = this.#context;
    const admission = destination.admission();
    if (admission.admits === "none") return Math.min(admission.waitMs, timing.pollIntervalMs);
    const lanes = this.#lanes().filter(hasRoomForRun);
    if (lanes.length === 0) return timing.pollIntervalMs;
    const startedMs = this.#now();
    const wakeUps = this.#wakeUps;
    // Lanes that read together share the queries, so those that are ready wait a little for the others.
    const waitMs = this.#runEndedMs + STALL_MS - startedMs;
    if (waitMs > 0 && this.#lanes().some((lane) => lane.isOpen && !lanes.includes(lane))) return waitMs;
    if (this.#pace.isQuiet && !(await this.#read(() => store.probe(lanes.map((lane) => lane.grant))))) {
      this.#answered(startedMs);
      this.#atRest = lanes.length === this.#lanes().length && wakeUps === this.#wakeUps;
      for (const lane of lanes) this.#readHeadsLast.delete(lane);
      return this.#pace.pauseAfter(startedMs);
    }
    if (this.#stopped || this.#isPaused) return timing.pollIntervalMs;
    // During the probe, a lane may have started to hand claimed events back.
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
    const wakeUps = this.#wakeUps;
    // Read before the snapshot is taken: a settle that is acknowledged later must not look like a lost commit.
    const acknowledged = new Map(lanes.map((lane) => [lane, lane.settledBatch]));
    const open = openRun(++this.#runNumber, lanes);
    this.#open = open;
    this.inFlight.beginRun(open.number);
    let run: Run | null = null;
    let exhausted = false;
    try {
      run = await this.#read(() => store.begin(this.#request(lanes)));
      this.#excludeMoved(open, run.lanes, acknowledged);
      while (!exhausted && open.claimed < limits.runRowsMax && this.#now() - startedMs < limits.runMs) {
        const rows = await this.#roomForPage(open, run, startedMs);
        if (rows === 0) break;
        const isFirst = open.rows === 0;
        exhausted = !(await this.#read(() => this.#page(open, run!, rows)));
        if (isFirst) this.#answered(startedMs);
        if (store.durableClaims !== null && open.hasRefused) break;
        if (open.passedOver.size >= limits.runRowsMax) break;
      }
    } catch (error) {
      // The failed call may have written durable claims: only a take-over frees them.
      if (store.durableClaims !== null && !tookNoEffect(error)) for (const lane of lanes) lane.lost(error);
      throw error;
    } finally {
      await run?.end().catch(() => undefined);
      this.#open = null;
      this.#runEndedMs = this.#now();
      this.inFlight.endRun();
    }
    for (const lane of lanes) this.#readHeadsLast.delete(lane);
    const sawAll = wakeUps === this.#wakeUps && open.leftOut.size === 0;
    this.#atRest = exhausted && sawAll && lanes.length === this.#lanes().length;
    const durationMs = this.#now() - startedMs;
    for (const recordId of run.repeated ?? []) events.emit("EventRepeated", { pipeline: name, recordId });
    events.emit("RunEnded", { pipeline: name, rows: open.rows, claimed: open.claimed, durationMs });
    return open;
  }

  #answered(startedMs: number): void {
    const { events, name } = this.#context;
    events.emit("SourceAnswered", { pipeline: name, pollMs: this.#now() - startedMs });
    this.#works();
  }

  #request(lanes: readonly Lane[]) {
    return {
      grants: lanes.map((lane) => lane.grant),
      exceptKeys: lanes.flatMap((lane) => lane.crowdedKeys()).slice(0, EXCEPT_KEYS_MAX),
      exceptTypes: this.#context.destination.blockedTypes(),
      isInFlight: this.#isInFlight,
    };
  }

  #excludeMoved(open: OpenRun, seen: readonly LaneState[], acknowledged: ReadonlyMap<Lane, bigint>): void {
    const states = new Map(seen.map((state) => [state.lane, state]));
    for (const [number, lane] of open.lanes) {
      if (isUnchanged(lane.grant, acknowledged.get(lane)!, states.get(number))) continue;
      open.leftOut.add(number);
      lane.lost(laneMoved(this.#context.name, number));
    }
  }

  /** Reads one page and offers its events to the lanes. False at the end of the run. */
  async #page(open: OpenRun, run: Run, rows: number): Promise<boolean> {
    const { budget, limits, store } = this.#context;
    const bytes = budget.pageBytes(limits.inFlightBytesMax);
    const page = await run.next(
      rows,
      bytes,
      store.durableClaims === null ? undefined : roomsOf(open.lanes.values(), open.leftOut),
    );
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

  /** The run returned an event in flight again. A durable claim, which had just been handed back, must be undone too. */
  #seenAgain(open: OpenRun, event: ClaimedEvent, refused: Map<Lane, string[]>): void {
    const { id, key, lane } = event;
    // A new event under the id of one that a failover lost: it waits for the next run, and so do the later ones of its key.
    const isReused = key !== null && this.inFlight.isReused(id, key, open.lanes.get(lane)?.claims);
    if (isReused || this.#context.store.durableClaims !== null) this.#refuse(open, event, refused);
  }

  #offer(open: OpenRun, event: ClaimedEvent, claimedMs: number): boolean {
    const lane = open.lanes.get(event.lane);
    if (lane === undefined || open.leftOut.has(event.lane)) return false;
    if (open.passedOver.size > 0 && event.key !== null && open.passedOver.has(event.key)) return false;
    return lane.offer(event, open.number, claimedMs);
  }

  #refuse(open: OpenRun, event: ClaimedEvent, refused: Map<Lane, string[]>): void {
    // A lane that is left out gets no more events from this run, so its keys need not be listed one by one.
    if (event.key !== null && !open.leftOut.has(event.lane)) open.passedOver.add(event.key);
    open.hasRefused = true;
    const lane = open.lanes.get(event.lane);
    if (lane === undefined) return;
    const ids = refused.get(lane) ?? [];
    refused.set(lane, ids);
    ids.push(event.id);
  }

  /**
   * Waits until every lane of the run has room, but only briefly for lanes that have none while others do. Returns the
   * rows of the next page; 0 ends the run.
   */
  async #roomForPage(open: OpenRun, run: Run, startedMs: number): Promise<number> {
    const { budget, destination, limits, timing } = this.#context;
    const waitingSinceMs = this.#now();
    for (;;) {
      const lanes = [...open.lanes.values()].filter((lane) => lane.isOpen && !open.leftOut.has(lane.grant.lane));
      const nowMs = this.#now();
      if (this.#stopped || this.#isPaused || lanes.length === 0 || nowMs - startedMs >= limits.runMs) return 0;
      if (destination.admission().admits === "none") return 0;
      if (nowMs - startedMs >= STALL_MS && this.#hasIdleLane(lanes)) return 0;
      const full = lanes.filter((lane) => lane.room === 0);
      const hasBytes = budget.hasRoom(bytesOf(this.#lanes()), limits.inFlightBytesMax);
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

  /** True when a lane has room but is not part of this run: it should not have to wait for the end of the run. */
  #hasIdleLane(lanes: readonly Lane[]): boolean {
    return this.#lanes().some((lane) => !lanes.includes(lane) && hasRoomForRun(lane));
  }

  /** The rows of the next page. One lane may get more than its share, but all together never exceed the limit. */
  #pageRows(lanes: readonly Lane[]): number {
    const room = lanes.reduce((sum, lane) => sum + lane.room, 0);
    return Math.min(this.#context.limits.pageRows, room, this.#roomLeft());
  }

  #roomLeft(): number {
    return Math.max(0, this.#context.limits.inFlightEventsMax - this.inFlight.size);
  }

  async #claimDueHeads(): Promise<void> {
    const { budget, destination, limits, name, store, timing, events } = this.#context;
    const unknownBytes = budget.headBytesMax(limits.inFlightBytesMax) / UNKNOWN_HEADS_MAX;
    if (destination.admission().admits === "none") return;
    const from = this.#headsFrom;
    for (const [place, lane] of rotated(this.#lanes(), from).entries()) {
      if (this.#isPaused) return;
      const room = { events: this.#headsMax(lane), bytes: this.#headBytesLeft(), unknownBytes };
      const ids = lane.holds.claimDue(this.#now(), room);
      if (ids.length === 0) continue;
      this.#headsFrom = from + place + 1;
      this.#readHeadsLast.add(lane);
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

  /** Half of the room; where there is room for one event only, held and new events alternate: neither starves. */
  #headsMax(lane: Lane): number {
    const room = this.#headRoom(lane);
    if (this.#context.destination.isOpen || lane.room === 0) return room;
    return room === 1 && lane.room === 1 ? Number(!this.#readHeadsLast.has(lane)) : Math.ceil(room / 2);
  }

  /** While only probes are sent, one at a time: held events that wait here would take the room of better probes. */
  #headRoom(lane: Lane): number {
    if (this.#headBytesLeft() === 0) return 0;
    const room = Math.min(HEADS_MAX, lane.headRoom, this.#roomLeft());
    return this.#context.destination.isOpen ? Math.min(room, lane.hasWaiting ? 0 : 1) : room;
  }

  /** The time until the next due hold. Ignores lanes without room: their due holds would make the poller spin. */
  #untilNextHeadMs(): number {
    const { destination, timing } = this.#context;
    if (this.#isPaused || destination.admission().admits === "none") return timing.pollIntervalMs;
    const dueMs = this.#lanes().map((lane) =>
      this.#headsMax(lane) > 0 ? lane.holds.nextDueMs() : Number.POSITIVE_INFINITY,
    );
    return Math.max(1, Math.min(...dueMs, Number.POSITIVE_INFINITY) - this.#now());
  }

  /** The memory that held events may still take. */
  #headBytesLeft(): number {
    const { budget, limits } = this.#context;
    return Math.max(0, budget.headBytesMax(limits.inFlightBytesMax) - bytesOf(this.#lanes()).headBytes);
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
