import type { Message } from "../core/event.ts";
import type { Hold } from "../core/hold.ts";
import { type Failed, rejected } from "../core/outcome.ts";
import type { ClaimedEvent, Grant, Settlement, SettleResult, Takeover } from "../ports/queue-store.ts";
import type { CommittedBatch } from "../ports/transactions.ts";
import type { PipelineContext } from "./context.ts";
import { type Attempt, Dispatcher, type DispatcherListener } from "./dispatcher.ts";
import { historyOf, retryDelayMs } from "./event-history.ts";
import { ExactlyOnce, type ExactlyOnceHost } from "./exactly-once.ts";
import { IntentReports } from "./intent-reports.ts";
import { LaneBrake } from "./lane-brake.ts";
import { endOrReportStuck, nullIfRefused } from "./lane-check.ts";
import { LaneClaims } from "./lane-claims.ts";
import { LaneFailures } from "./lane-failures.ts";
import { LaneHolds } from "./lane-holds.ts";
import type { LaneHost } from "./lane-host.ts";
import { type Entry, entryOf, type FailedEntry, type KeyLimits, keyLimits, LaneQueue } from "./lane-queue.ts";
import type { RateGate } from "./rate-gate.ts";
import { plainSender } from "./sender.ts";
import { Settler, type SettlerListener } from "./settler.ts";
import { claimSize, crashPoison, halved, Suspects } from "./suspects.ts";
import { translate } from "./translation.ts";
import { outcomeOfUnanswered } from "./unanswered-sends.ts";
import { UnmarkedRows } from "./unmarked-rows.ts";

/** The run number of events that no run claimed: they were read by id, because their hold was due. */
const BY_ID = 0;

/**
 * One owned slice of a pipeline's keys. Events enter by `offer`, wait in the queue, are published by the dispatcher and
 * written back by the settler. A lane object lives from one take-over to the next. Any doubt about its progress voids
 * it as a whole, because what it has in memory may then contradict the source.
 */
export class Lane implements DispatcherListener, ExactlyOnceHost, SettlerListener {
  readonly grant: Grant;
  readonly holds = new LaneHolds();
  readonly #context: PipelineContext;
  readonly #host: LaneHost;
  readonly #queue = new LaneQueue();
  readonly claims: LaneClaims;
  readonly #reports: IntentReports;
  readonly #dispatcher: Dispatcher;
  readonly #failures: LaneFailures;
  readonly #settler: Settler;
  readonly #exactlyOnce: ExactlyOnce | null;
  readonly #suspects = new Suspects();
  readonly #unmarked: UnmarkedRows;
  readonly #brake: LaneBrake;
  readonly #takenHolds: readonly Hold[];
  readonly #over = new AbortController();
  readonly #keyLimits: KeyLimits;
  #open = false;
  #isLeaving = false;
  #openedAtMs = 0;
  #opening: Promise<void> | null = null;
  /** Snapshots of earlier runs may still hold events that this lane delivered before it was taken over again. */
  #acceptsFromRun = Number.POSITIVE_INFINITY;
  #crashes: number;

  constructor(context: PipelineContext, host: LaneHost, takeover: Takeover) {
    this.grant = takeover.grant;
    this.#context = context;
    this.#host = host;
    this.#crashes = takeover.crashes;
    this.#takenHolds = takeover.holds;
    this.#brake = new LaneBrake(context, this.grant.lane, this.holds);
    this.claims = new LaneClaims(context.budget, host.inFlight, (entry) => this.#finished(entry));
    this.#reports = new IntentReports(context);
    const { transactions } = context.destination.publisher;
    this.#exactlyOnce = transactions === undefined ? null : new ExactlyOnce(context, transactions, takeover, this);
    this.#dispatcher = new Dispatcher(context, this.#queue, this.#exactlyOnce ?? plainSender(context), this);
    this.#settler = new Settler(context, takeover, this.claims, this, this.#over.signal);
    const { holds } = this;
    const handBack = (entries: readonly Entry[]) => this.#handBack(entries);
    const rest = { queue: this.#queue, reports: this.#reports, settler: this.#settler, handBack };
    this.#failures = new LaneFailures({ context, holds, ...rest });
    holds.replace(takeover.holds, this.#now(), () => false);
    this.#keyLimits = keyLimits(context.limits.keyQueueMax, () => this.#claimMax);
    this.#unmarked = new UnmarkedRows(context, this.grant.lane, holds, host);
  }

  /** Starts to take events: at once or, with a ledger, once the former owner's deliveries are settled. */
  open(): void {
    if (this.#exactlyOnce === null) this.#opened();
    else {
      this.#opening = this.#exactlyOnce.open().then(
        (isOpen) => void (isOpen && this.#opened()),
        (error: unknown) => this.lost(error),
      );
    }
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** True while the lane ends, and after that. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  get inFlight(): number {
    return this.claims.size;
  }

  get hasWaiting(): boolean {
    return this.#queue.waiting > 0;
  }

  /** The last batch whose settle was acknowledged. */
  get settledBatch(): bigint {
    return this.#settler.settledBatch;
  }

  /** How many new events the lane takes now. Too many holds mean that the destination is broken, not the events. */
  get room(): number {
    return this.#brake.isOn ? 0 : this.#free;
  }

  /** How many held events the lane takes now: at most half of its places, or events that always fail would take all. */
  get headRoom(): number {
    if (this.#brake.isOn) return this.#free;
    return Math.max(0, Math.min(this.#free, Math.max(1, Math.floor(this.#claimMax / 2)) - this.holds.beingTried));
  }

  get #free(): number {
    return this.#open && !this.#unmarked.areTooMany ? Math.max(0, this.#claimMax - this.claims.size) : 0;
  }

  /** False while claimed events go back to the source: a run would return later events of their keys without them. */
  get isReadyForRun(): boolean {
    return this.#open && !this.#settler.isHandingBack;
  }

  /** Keys that have enough events in this lane. */
  crowdedKeys(): string[] {
    return this.#queue.crowdedKeys(this.#keyLimits);
  }

  /** False when the event must wait; the caller must then take no later event of its key from the same run. */
  offer(event: ClaimedEvent, run: number, claimedMs: number): boolean {
    if (!this.#open || run < this.#acceptsFromRun) return false;
    if (this.#crashes > 0 && this.room === 0) return false;
    if (this.holds.get(event.id) !== undefined || this.holds.parks(event.key)) return false;
    if (event.key !== null && this.#queue.isCrowded(event.key, this.#keyLimits)) return false;
    return this.#accept(event, run, claimedMs, false);
  }

  /** Takes held events that are due. Events without room are postponed. */
  offerHeads(events: readonly ClaimedEvent[]): void {
    const nowMs = this.#now();
    const isFresh = nowMs - this.#openedAtMs < this.#context.timing.pollIntervalMs;
    for (const event of events) {
      // An event that may void the lane again is sent last: otherwise nothing else would ever be sent.
      const mayWait = isFresh && this.#host.unanswered.ofEvent(event.id) !== undefined;
      if (this.#open && !mayWait && this.#accept(event, BY_ID, nowMs, true)) continue;
      this.holds.postpone(event.id, this.#now() + retryDelayMs(this.#context, event));
      this.#settler.handBack([event.id]);
    }
    this.pump();
  }

  pump(withFailed = false): void {
    this.#dispatcher.pump(withFailed);
  }

  /** While only probes are sent, failed events would take the room of events that make better probes. */
  handBackFailedHeads(): void {
    if (this.hasWaiting) this.#handBack(this.#queue.dropLinesWith(({ isHead, hasFailed }) => isHead && hasFailed));
  }

  /** Events that a run returned and the lane did not take: durable claims must be undone. */
  refuse(ids: readonly string[]): void {
    this.#settler.handBack(ids);
  }

  /** Deletes holds whose rows are gone. */
  releaseHolds(ids: readonly string[]): void {
    this.#settler.releaseHolds(ids);
  }

  /** Compares the holds with the source's rows, never at the same time as another write of the lane. */
  reviewHolds(): Promise<void> {
    return this.#settler.runExclusive(async () => {
      const holds = await this.#context.store.reviewHolds(this.grant).catch(nullIfRefused);
      if (holds === null) return;
      const freed = this.holds.replace(holds, this.#now(), (id) => this.claims.get(id) !== undefined);
      for (const key of freed) this.#host.passOver(key);
      this.#unmarked.review();
      this.#brake.watch();
      this.#host.wake();
    });
  }

  /** Re-reads the holds that an operator may have made due, never at the same time as another write of the lane. */
  refreshHolds(): Promise<void> {
    return this.#settler.runExclusive(async () => {
      const holds = await this.#context.store.livingHolds?.(this.grant).catch(nullIfRefused);
      if (holds == null) return;
      this.holds.takeUp(holds, this.#now(), (id) => this.claims.get(id) !== undefined);
      this.#host.wake();
    });
  }

  /** Ends the lane in good order: finishes and settles what is on the wire, hands back the rest, releases the lane. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    if (!this.#open) await this.#exactlyOnce?.close();
    await this.#opening;
    this.#open = false;
    this.#handBack(this.#queue.dropAll());
    // A page that is being claimed at this moment must be handed back too.
    if (this.#context.store.durableClaims !== null) await this.#host.betweenPages();
    await this.#dispatcher.idle();
    this.#handBack(this.#queue.dropAll());
    await this.#settler.idle();
    if (this.#over.signal.aborted) return;
    this.#end();
    await this.#exactlyOnce?.close();
    await this.#context.store.release(this.grant, this.#suspects.ids());
    this.#context.events.emit("LaneReleased", { pipeline: this.#context.name, lane: this.grant.lane });
  }

  /** Drops everything in memory. Resolves when nothing can arrive any more, if the publisher keeps its promise. */
  async abandon(): Promise<void> {
    this.#open = false;
    this.#isLeaving = true;
    this.#over.abort();
    this.#handBack(this.#queue.dropAll());
    const ending = Promise.all([this.#dispatcher.abandon(), this.#exactlyOnce?.close(), this.#opening]);
    await endOrReportStuck(this.#context, this.grant.lane, ending);
    this.#end();
  }

  /** Closes connections that an idle lane does not need. */
  rest = async (): Promise<void> => this.#exactlyOnce?.rest();

  // DispatcherListener

  maySend(): boolean {
    if (!this.#open || this.#unmarked.areTooMany) return false;
    return this.#host.isAlive() && this.#exactlyOnce?.hasRoom !== false;
  }

  get limit(): RateGate {
    return this.#host.limit;
  }

  publishSize(): number {
    const { batchSize, transactionSize } = this.#context.limits;
    if (this.#exactlyOnce === null) return Math.min(batchSize, this.#claimMax);
    return Math.min(halved(transactionSize, this.#host.unanswered.ofBatches(this.grant.lane)), this.#claimMax);
  }

  beforeSend(entry: Entry): Promise<boolean> | null {
    const { id, key } = entry.event;
    const crashedBefore = (this.holds.get(id)?.crashes ?? 0) > 0;
    if ((this.#claimMax > 1 && !crashedBefore) || this.#suspects.isNoted(id)) return null;
    this.#suspects.add(id, entry.isHead);
    return this.#settler.suspect(id, key);
  }

  sending(entries: readonly Entry[]): void {
    if (this.#context.store.durableClaims === null) return;
    for (const { event } of entries) this.claims.sent(event.id);
    this.#settler.noteSending();
  }

  outcomeBefore(entry: Entry): Failed | null {
    if (entry.fault !== null) return rejected(entry.fault, { error: entry.faultError });
    const sinceMs = this.#exactlyOnce === null ? null : this.#host.unanswered.takeExhausted(entry.event.id);
    return sinceMs === null ? null : outcomeOfUnanswered(this.#context.destination, sinceMs);
  }

  delivered(entries: readonly Entry[], attempt: Attempt, batch: bigint | null): void {
    this.#context.destination.delivered(this.#context.name, entries, attempt.probe);
    const ids = entries.map(({ event }) => event.id);
    this.#host.unanswered.endOfEvents(ids);
    this.#reports.relayed(entries, attempt, (entry) => this.#failures.attemptsOf(entry) + 1);
    const released = entries.filter(({ event, isHead }) => this.#suspects.delivered(event.id) || isHead);
    this.#settler.delivered(
      ids,
      released.map(({ event }) => event.id),
      batch,
    );
  }

  failed(failures: readonly FailedEntry[], attempt: Attempt): void {
    this.#failures.failed(failures, attempt);
    this.pump();
  }

  // ExactlyOnceHost

  heal(batches: readonly CommittedBatch[], reusedIds: number): Promise<void> {
    const count = batches.reduce((sum, { ids }) => sum + ids.length, 0);
    const about = { pipeline: this.#context.name, lane: this.grant.lane };
    this.#context.events.emit("LaneHealed", { ...about, batches: batches.length, count, reusedIds });
    return this.#settler.heal(batches, (id) => this.holds.get(id) !== undefined);
  }

  unanswered(messages: readonly Message[], startedMs: number): void {
    if (messages.length > 1) this.#host.unanswered.noteBatch(this.grant.lane);
    else this.#host.unanswered.noteEvent(messages[0]!.event.id, startedMs);
  }

  // SettlerListener

  settled(settlement: Settlement, { dead = [], refusal, unmarked }: SettleResult): void {
    this.#host.settled(this);
    if (settlement.delivered.length > 0) {
      this.#crashes = Math.max(0, this.#crashes - 1);
      this.#host.unanswered.endOfBatch(this.grant.lane);
    }
    for (const id of [...settlement.delivered, ...settlement.handedBack]) this.claims.finish(id);
    for (const failure of settlement.failed) {
      this.#suspects.failed(failure.id);
      this.#failures.settled(failure, this.claims.get(failure.id), dead);
      this.claims.finish(failure.id);
    }
    for (const id of settlement.releasedHolds) this.#host.passOver(this.holds.remove(id)?.key ?? null);
    this.#unmarked.found(unmarked, refusal);
    // Events parked behind these holds can be read now, even if the last run found nothing.
    if (settlement.releasedHolds.length > 0) this.#host.expectEvents();
    this.#brake.watch();
    this.pump();
    this.#host.wake();
  }

  refused(error: unknown): void {
    this.#host.refused(this, error);
  }

  lost(error: unknown): void {
    if (!this.#over.signal.aborted) this.#host.lost(this, error);
  }

  #opened(): void {
    if (this.#isLeaving) return;
    this.#acceptsFromRun = this.#host.nextRun();
    this.#open = true;
    this.#openedAtMs = this.#now();
    // An event that a former owner delivered is not poison: its settle has removed the hold.
    for (const poison of crashPoison(this.#takenHolds))
      if (this.holds.get(poison.id) !== undefined) this.#failures.deadLetter(poison);
    this.#brake.watch();
    this.#host.opened(this);
  }

  get #claimMax(): number {
    return claimSize(this.#host.laneShare(), this.#context.limits.batchSize, this.#crashes);
  }

  #accept(event: ClaimedEvent, run: number, claimedMs: number, isHead: boolean): boolean {
    const { destination } = this.#context;
    const made = translate(this.#context, event);
    const topic = made.message?.topic ?? null;
    const admission = topic === null ? "all" : destination.topicAdmission(topic).admits;
    if (admission === "none") return false;
    const topicProbe = admission === "probe" && topic !== null;
    if (topicProbe) destination.beginTopicProbe(topic);
    const past = historyOf(this.#context, event.id, this.holds, this.#host.unanswered);
    const entry = entryOf(event, made, { owner: this.claims, run, claimedMs, isHead, topicProbe, ...past });
    this.claims.add(entry);
    this.#queue.push(entry);
    return true;
  }

  /** Gives up claims of events that are not sent. A later run returns them; until then their keys are passed over. */
  #handBack(entries: readonly Entry[]): void {
    const isLost = this.#over.signal.aborted;
    for (const { event, isHead } of entries) {
      this.#host.passOver(event.key);
      if (isHead) this.holds.postpone(event.id, this.#now() + this.#context.timing.pollIntervalMs);
      else if (this.#suspects.has(event.id) && !isLost) this.#settler.releaseHolds([event.id]);
      if (this.#context.store.durableClaims === null || isLost) this.claims.finish(event.id);
    }
    if (!isLost) this.#settler.handBack(entries.map((entry) => entry.event.id));
  }

  /** However a claim ends: a topic probe that was not sent or not answered must not keep its topic closed. */
  #finished(entry: Entry): void {
    this.#suspects.finished(entry.event.id);
    if (entry.topicProbe) this.#context.destination.cancelTopicProbe(entry.message!.topic);
  }

  #end(): void {
    this.#over.abort();
    this.claims.finishAll();
  }

  #now(): number {
    return this.#context.clock.monotonicMs();
  }
}
