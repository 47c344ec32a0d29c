import type { InFlightSet } from "../core/in-flight.ts";
import type { Failed } from "../core/outcome.ts";
import type { ClaimedEvent, Failure, Grant, Settlement, Takeover } from "../ports/queue-store.ts";
import type { PipelineContext } from "./context.ts";
import { claimSize, crashPoison } from "./crash-poison.ts";
import { type Attempt, Dispatcher, type DispatcherListener } from "./dispatcher.ts";
import { nextAfterFailure } from "./failure-rule.ts";
import { HoldBook, type KeptHold } from "./hold-book.ts";
import { IntentReports } from "./intent-reports.ts";
import { nullIfRefused } from "./lane-check.ts";
import { LaneClaims } from "./lane-claims.ts";
import { type Entry, type FailedEntry, LaneQueue } from "./lane-queue.ts";
import { Settler, type SettlerListener } from "./settler.ts";
import { policyFor, translate } from "./translation.ts";

/** Claimed by no run: read by id, because its hold was due. */
const BY_ID = 0;
/** So often an event may go without an answer in a row before it makes room for others. */
const SILENCES_MAX = 2;
/** It is tried again when the circuit had time for so many probes by others. */
const SET_ASIDE_PROBES = 10;

type EventFailure = Exclude<Failed, { kind: "skipped" }>;
type Retry = Extract<Failed, { kind: "retry" }>;

/** What a lane needs of the pipeline it belongs to. */
export interface LaneHost {
  readonly inFlight: InFlightSet;
  /** The open run must show no later event of this key any more. */
  passOver(key: string | null): void;
  /** There may be room, a due hold or a released key. */
  wake(): void;
  /** True while the instance's lease lasts. */
  isAlive(): boolean;
  /** Events that one lane may have in flight. */
  laneShare(): number;
  /** Resolves when the open run is between two pages. */
  betweenPages(): Promise<void>;
  /** A write of the lane succeeded. */
  settled(lane: Lane): void;
  /** The source refuses the lane's writes for now. */
  refused(lane: Lane, error: unknown): void;
  lost(lane: Lane, error: unknown): void;
}

/**
 * One owned slice of a pipeline's keys: events come in by `offer`, wait in the queue, are published by the dispatcher
 * and written back by the settler. It lives from one take-over to the next; whatever goes wrong with its progress
 * voids it as a whole.
 */
export class Lane implements DispatcherListener, SettlerListener {
  readonly grant: Grant;
  readonly holds = new HoldBook();
  /** Earlier runs may show what the lane's former life delivered. */
  readonly acceptsFromRun: number;
  readonly #context: PipelineContext;
  readonly #host: LaneHost;
  readonly #queue = new LaneQueue();
  readonly #claims: LaneClaims;
  readonly #reports: IntentReports;
  readonly #dispatcher: Dispatcher;
  readonly #settler: Settler;
  readonly #suspects = new Set<string>();
  readonly #over = new AbortController();
  #open = true;
  #crashes: number;
  #braked = false;

  constructor(context: PipelineContext, host: LaneHost, takeover: Takeover, acceptsFromRun: number) {
    this.grant = takeover.grant;
    this.acceptsFromRun = acceptsFromRun;
    this.#context = context;
    this.#host = host;
    this.#crashes = takeover.crashes;
    this.#claims = new LaneClaims(host.inFlight, (entry) => this.#finished(entry));
    this.#reports = new IntentReports(context);
    this.#dispatcher = new Dispatcher(context, this.#queue, this);
    this.#settler = new Settler(context, takeover.grant, takeover.settledBatch, this, this.#over.signal);
    this.holds.replace(takeover.holds, this.#now(), () => false);
    for (const poison of crashPoison(takeover.holds)) this.#bury(poison);
  }

  get isOpen(): boolean {
    return this.#open;
  }

  get inFlight(): number {
    return this.#claims.size;
  }

  get bytes(): number {
    return this.#claims.bytes;
  }

  /** The last batch whose settle was acknowledged. */
  get settledBatch(): bigint {
    return this.#settler.settledBatch;
  }

  /** How many new events it takes now. Too many holds mean that the destination is broken, not the events. */
  get room(): number {
    return this.holds.size >= this.#context.limits.holdsPerLaneMax ? 0 : this.headRoom;
  }

  /** How many held events it takes now. */
  get headRoom(): number {
    return this.#open ? Math.max(0, this.#claimMax - this.#claims.size) : 0;
  }

  /** False while claimed events are on their way back to the source: a run would show later ones without them. */
  get isReadyForRun(): boolean {
    return this.#open && !this.#settler.isHandingBack;
  }

  /** Keys that have enough events waiting here. */
  crowdedKeys(): string[] {
    return this.#queue.crowdedKeys(this.#context.limits.keyQueueMax);
  }

  /** False when the event must wait; then no later event of its key may come from the same run. */
  offer(event: ClaimedEvent, run: number): boolean {
    if (!this.#open || run < this.acceptsFromRun) return false;
    if (this.#crashes > 0 && this.room === 0) return false;
    if (this.holds.get(event.id) !== undefined || this.holds.parks(event.key)) return false;
    if (event.key !== null && this.#queue.waitingOf(event.key) >= this.#context.limits.keyQueueMax) return false;
    return this.#accept(event, run, false);
  }

  /** Takes held events that are due again. What has no place now is tried later. */
  offerHeads(events: readonly ClaimedEvent[]): void {
    for (const event of events) {
      if (this.#open && this.#accept(event, BY_ID, true)) continue;
      this.holds.postpone(event.id, this.#now() + this.#context.timing.pollIntervalMs);
      this.#settler.handBack([event.id]);
    }
    this.pump();
  }

  pump(): void {
    this.#dispatcher.pump();
  }

  /** Shown by a run and not taken: where claims are durable they must be undone. */
  refuse(ids: readonly string[]): void {
    this.#settler.handBack(ids);
  }

  /** The rows of these holds are gone. */
  releaseHolds(ids: readonly string[]): void {
    this.#settler.releaseHolds(ids);
  }

  /** Compares the holds with the source's rows, in turn with the lane's other writes. */
  reviewHolds(): Promise<void> {
    return this.#settler.inTurn(async () => {
      const holds = await this.#context.store.reviewHolds(this.grant).catch(nullIfRefused);
      if (holds === null) return;
      const freed = this.holds.replace(holds, this.#now(), (id) => this.#claims.get(id) !== undefined);
      for (const key of freed) this.#host.passOver(key);
      this.#host.wake();
    });
  }

  /** For the renewal of durable claims. */
  claimedIds(): string[] {
    return this.#claims.ids();
  }

  /** Gives the lane up in good order: what is on the wire is finished and settled, the rest handed back. */
  async leave(): Promise<void> {
    this.#open = false;
    this.#handBack(this.#queue.dropAll());
    // A page that is being claimed right now has to be handed back too.
    if (this.#context.store.durableClaims !== null) await this.#host.betweenPages();
    await this.#dispatcher.idle();
    this.#handBack(this.#queue.dropAll());
    await this.#settler.idle();
    if (this.#over.signal.aborted) return;
    this.#end();
    await this.#context.store.release(this.grant);
    this.#context.events.emit("LaneReleased", { pipeline: this.#context.name, lane: this.grant.lane });
  }

  /** Throws away what is in memory. Resolves when nothing of it can arrive any more. */
  async abandon(): Promise<void> {
    this.#open = false;
    this.#over.abort();
    this.#handBack(this.#queue.dropAll());
    await this.#dispatcher.abandon();
    this.#end();
  }

  // What the dispatcher tells

  maySend(): boolean {
    return this.#open && this.#host.isAlive();
  }

  publishSize(): number {
    return Math.min(this.#context.limits.batchSize, this.#claimMax);
  }

  beforeSend(entry: Entry): Promise<boolean> | null {
    const { id, key } = entry.event;
    const crashedBefore = (this.holds.get(id)?.crashes ?? 0) > 0;
    if ((this.#claimMax > 1 && !crashedBefore) || this.#suspects.has(id)) return null;
    this.#suspects.add(id);
    return this.#settler.suspect(id, key);
  }

  delivered(entry: Entry, attempt: Attempt): void {
    const { id } = entry.event;
    this.#context.destination.delivered(entry.message!.topic, attempt.probe);
    this.#reports.relayed(entry, attempt, this.#attemptsOf(entry) + 1);
    this.#settler.delivered(id, entry.isHead || this.#suspects.has(id));
  }

  failed(failures: readonly FailedEntry[], attempt: Attempt): void {
    const { entry, outcome } = failures[0]!;
    const entries = failures.map((failure) => failure.entry);
    if (outcome.kind === "skipped") this.#notJudged(entries, attempt);
    else if (outcome.scope === "event") this.#eventFailed(entry, entries.slice(1), outcome, attempt);
    else if (outcome.scope === "topic") this.#topicFailed(entries, outcome, attempt);
    else this.#destinationFailed(entries, outcome, attempt);
    this.pump();
  }

  // What the settler tells

  settled(settlement: Settlement): void {
    this.#host.settled(this);
    if (settlement.delivered.length > 0) this.#crashes = Math.max(0, this.#crashes - 1);
    for (const id of settlement.delivered) this.#claims.finish(id);
    for (const failure of settlement.failed) this.#failureSettled(failure);
    for (const id of settlement.handedBack) this.#claims.finish(id);
    for (const id of settlement.releasedHolds) this.#host.passOver(this.holds.remove(id)?.key ?? null);
    this.#watchBrake();
    this.pump();
    this.#host.wake();
  }

  refused(error: unknown): void {
    this.#host.refused(this, error);
  }

  lost(error: unknown): void {
    if (!this.#over.signal.aborted) this.#host.lost(this, error);
  }

  get #claimMax(): number {
    return claimSize(this.#host.laneShare(), this.#context.limits.batchSize, this.#crashes);
  }

  #accept(event: ClaimedEvent, run: number, isHead: boolean): boolean {
    const { destination } = this.#context;
    const { message, fault } = translate(this.#context, event);
    const admission = message === null ? "all" : destination.topicAdmission(message.topic).admits;
    if (admission === "none") return false;
    const topicProbe = admission === "probe";
    if (topicProbe) destination.beginTopicProbe(message!.topic);
    const silentSinceMs = this.holds.get(event.id)?.silentSinceMs ?? null;
    const entry: Entry = { event, message, fault, isHead, topicProbe, silences: 0, silentSinceMs, line: null };
    this.#claims.add(entry, run);
    this.#queue.push(entry);
    return true;
  }

  /** It tells nothing about the destination either, so that another probe may go. */
  #notJudged(entries: readonly Entry[], attempt: Attempt): void {
    this.#queue.putBack(entries);
    if (attempt.probe) this.#context.destination.cancelProbe();
  }

  #destinationFailed(entries: readonly Entry[], outcome: EventFailure, attempt: Attempt): void {
    for (const entry of entries) this.#reports.failed(entry, outcome, attempt, this.#attemptsOf(entry) + 1, null);
    if (entries[0]!.silences < SILENCES_MAX) this.#queue.putBack(entries);
    else this.#setAside(entries[0]!, entries.slice(1), outcome.reason);
    const afterMs = (outcome as Retry).afterMs;
    this.#context.destination.failed(outcome.reason, { probe: attempt.probe, afterMs });
  }

  /** Nobody knows whose fault it is: the event makes room for others to find out, and no attempt is spent. */
  #setAside(entry: Entry, followers: readonly Entry[], reason: string): void {
    const delayMs = this.#context.timing.circuitInitialMs;
    this.#hold(entry, followers, { attempts: this.#attemptsOf(entry), reason, next: { kind: "retry", delayMs } }, true);
  }

  #topicFailed(entries: readonly Entry[], outcome: EventFailure, attempt: Attempt): void {
    const { destination } = this.#context;
    const { event, message, topicProbe } = entries[0]!;
    const topic = message!.topic;
    this.#reports.failed(entries[0]!, outcome, attempt, this.#attemptsOf(entries[0]!) + 1, null);
    destination.topicFailed(topic, event.type, outcome.reason, {
      probe: topicProbe,
      afterMs: (outcome as Retry).afterMs,
    });
    if (attempt.probe) destination.cancelProbe();
    const waiting = event.key === null ? [] : this.#queue.dropKey(event.key);
    const others = this.#queue.dropLinesWith((entry) => entry.message?.topic === topic);
    this.#handBack([...entries, ...waiting, ...others]);
  }

  #eventFailed(entry: Entry, followers: readonly Entry[], outcome: EventFailure, attempt: Attempt): void {
    const { destination, random } = this.#context;
    const counts = entry.fault !== null || destination.eventFailed(entry.event.id, outcome.reason, attempt.probe);
    if (!counts) {
      this.#setAside(entry, followers, outcome.reason);
      return;
    }
    const attempts = this.#attemptsOf(entry) + 1;
    const next = nextAfterFailure(policyFor(this.#context, entry.event.type), outcome, attempts, random.next());
    this.#reports.failed(entry, outcome, attempt, attempts, next.kind === "retry" ? next.delayMs : null);
    this.#hold(entry, followers, { attempts, reason: outcome.reason, next });
  }

  #hold(
    entry: Entry,
    followers: readonly Entry[],
    failure: Pick<Failure, "attempts" | "reason" | "next">,
    isSetAside = false,
  ): void {
    const { id, key } = entry.event;
    const { attempts, next } = failure;
    const crashes = this.holds.get(id)?.crashes ?? 0;
    const { silentSinceMs } = entry;
    // Not due, and nothing of its key may pass, before it is written: a hold must never be ahead of its row.
    const dueAtMs = Number.POSITIVE_INFINITY;
    const dead = next.kind === "dead";
    this.holds.put({ id, key, dead, parks: true, attempts, crashes, dueAtMs, silentSinceMs, isSetAside });
    this.#handBack([...followers, ...(key === null ? [] : this.#queue.dropKey(key))]);
    this.#settler.failed({ id, key, ...failure });
  }

  #failureSettled({ id, next, reason, attempts }: Failure): void {
    const entry = this.#claims.get(id);
    const hold = this.holds.get(id);
    if (hold !== undefined) {
      const dueAtMs = next.kind === "retry" ? this.#now() + this.#delayOf(hold, next.delayMs) : 0;
      this.holds.put({ ...hold, dueAtMs, parks: next.kind === "retry" || next.parks });
    }
    if (next.kind === "dead" && entry !== undefined) this.#reports.deadLettered(entry, attempts, reason, next.parks);
    this.#claims.finish(id);
  }

  /** In the database a set-aside event is due soon; here it waits until the circuit has closed, or for long. */
  #delayOf({ isSetAside }: KeptHold, delayMs: number): number {
    const { destination, timing } = this.#context;
    return isSetAside && destination.isOpen ? SET_ASIDE_PROBES * timing.circuitMaxMs : delayMs;
  }

  /** Claimed events that are not sent after all. They come again in a later run, their keys not from this one. */
  #handBack(entries: readonly Entry[]): void {
    const isLost = this.#over.signal.aborted;
    for (const { event, isHead } of entries) {
      this.#host.passOver(event.key);
      if (isHead) this.holds.postpone(event.id, this.#now() + this.#context.timing.pollIntervalMs);
      else if (this.#suspects.has(event.id) && !isLost) this.#settler.releaseHolds([event.id]);
      if (this.#context.store.durableClaims === null || isLost) this.#claims.finish(event.id);
    }
    if (!isLost) this.#settler.handBack(entries.map((entry) => entry.event.id));
  }

  /** However it ends: a probe that was not sent or not answered must not keep its topic closed. */
  #finished(entry: Entry): void {
    this.#suspects.delete(entry.event.id);
    if (entry.topicProbe) this.#context.destination.cancelTopicProbe(entry.message!.topic);
  }

  #end(): void {
    this.#over.abort();
    this.#claims.finishAll();
  }

  #bury(poison: Failure): void {
    const { id, key, attempts } = poison;
    const crashes = this.holds.get(id)?.crashes ?? 0;
    const silence = { silentSinceMs: null, isSetAside: false };
    this.holds.put({ id, key, dead: true, parks: true, attempts, crashes, dueAtMs: 0, ...silence });
    this.#settler.failed(poison);
  }

  #watchBrake(): void {
    const { events, limits, name } = this.#context;
    const braked = this.holds.size >= limits.holdsPerLaneMax;
    if (braked && !this.#braked) {
      events.emit("LaneBraked", { pipeline: name, lane: this.grant.lane, holds: this.holds.size });
    }
    this.#braked = braked;
  }

  #attemptsOf(entry: Entry): number {
    return Math.max(entry.event.failures, this.holds.get(entry.event.id)?.attempts ?? 0);
  }

  #now(): number {
    return this.#context.clock.monotonicMs();
  }
}
