import { type RelayError, reasonOf, stackOf, tookNoEffect } from "../core/errors.ts";
import { LatencyCounter } from "../core/latency.ts";
import type { Failure, Grant, Settlement, SettleResult, Takeover } from "../ports/queue-store.ts";
import type { CommittedBatch } from "../ports/transactions.ts";
import type { PipelineContext } from "./context.ts";
import { DeliveredPile } from "./delivered-pile.ts";
import type { LaneClaims } from "./lane-claims.ts";
import { firstPart, rowsOf } from "./settle-parts.ts";
import { SettleSize } from "./settle-size.ts";

/** A database that is busy for so many tries of one write is a trouble that people should know of. */
const BUSY_TRIES = 4;

/** What the lane learns from its settler. */
export interface SettlerListener {
  /** All of it is written. */
  settled(settlement: Settlement, result: SettleResult): void;
  /** The source refuses the write, or has been busy for several tries; it is tried again. */
  refused(error: unknown): void;
  /** The effect of a write is unknown, or the lane has another owner: what is in memory is void. */
  lost(error: unknown): void;
}

type KnownClaims = Pick<LaneClaims, "createdAtOf" | "sentIds">;

interface Task {
  readonly run: () => Promise<void>;
  /** Lets the waiting caller go, whether it ran or not. */
  readonly end: () => void;
}

/** What a destination answers within this time is settled without a note that it was sent. */
const NOTE_AFTER_MS = 50;

/**
 * Writes a lane's outcomes back, strictly one write after the other; what gathers meanwhile goes into the next one.
 * Other writes of the lane (review of holds, suspects) wait in the same row, so that none sees half of another.
 */
export class Settler {
  readonly #context: PipelineContext;
  readonly #grant: Grant;
  readonly #listener: SettlerListener;
  readonly #signal: AbortSignal;
  readonly #delivered = new DeliveredPile();
  readonly #claims: KnownClaims;
  readonly #latencies = new LatencyCounter();
  readonly #size: SettleSize;
  /** Of the present write, in vain. */
  #tries = 0;
  #batch: bigint;
  #failed: Failure[] = [];
  #handedBack: string[] = [];
  #releasedHolds: string[] = [];
  #handingBack = 0;
  #sendNote: "none" | "soon" | "due" = "none";
  #hasNoted = false;
  #tasks: Task[] = [];
  #working: Promise<void> | null = null;

  constructor(
    context: PipelineContext,
    { grant, settledBatch }: Pick<Takeover, "grant" | "settledBatch">,
    claims: KnownClaims,
    listener: SettlerListener,
    signal: AbortSignal,
  ) {
    this.#context = context;
    this.#grant = grant;
    this.#batch = settledBatch;
    const { settleEventsMax, transactionSize } = context.limits;
    // A batch of a ledger is written as a whole as long as the database takes it.
    this.#size = new SettleSize(Math.max(settleEventsMax, transactionSize));
    this.#claims = claims;
    this.#listener = listener;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#drop(), { once: true });
  }

  /** The number of the last batch whose settle was acknowledged. */
  get settledBatch(): bigint {
    return this.#batch;
  }

  delivered(id: string, releasesHold: boolean): void {
    this.#delivered.add(id);
    if (releasesHold) this.#releasedHolds.push(id);
    this.#start();
  }

  /** With a ledger: what was delivered since the last call is this batch of it. In the same turn as the deliveries. */
  endBatch(batch: bigint): void {
    this.#delivered.endBatch(batch, "batch");
  }

  /** Writes down what a former owner delivered. Resolves when that is durable or the lane is lost. */
  async heal(batches: readonly CommittedBatch[], hasHold: (id: string) => boolean): Promise<void> {
    for (const { batch, ids } of batches) {
      for (const id of ids) this.delivered(id, hasHold(id));
      this.#delivered.endBatch(batch, "heal");
    }
    this.#start();
    await this.idle();
  }

  failed(failure: Failure): void {
    this.#failed.push(failure);
    this.#start();
  }

  /** Claimed and never sent. Costs nothing where claims are not durable. */
  handBack(ids: readonly string[]): void {
    if (this.#context.store.durableClaims === null) return;
    this.#handedBack.push(...ids);
    this.#handingBack += ids.length;
    if (ids.length > 0) this.#start();
  }

  /** True until all that was handed back is there again for a claim: a later event of its key must not be claimed first. */
  get isHandingBack(): boolean {
    return this.#handingBack > 0;
  }

  /**
   * If this process dies, its successor has to know which of the claimed events were sent. What is settled soon need not
   * be written down for that.
   */
  noteSending(): void {
    if (this.#sendNote !== "none") return;
    this.#sendNote = "soon";
    void this.#context.clock.sleep(NOTE_AFTER_MS, this.#signal).then(() => {
      this.#sendNote = this.#signal.aborted || this.#claims.sentIds().length === 0 ? "none" : "due";
      this.#start();
    });
  }

  releaseHolds(ids: readonly string[]): void {
    this.#releasedHolds.push(...ids);
    if (ids.length > 0) this.#start();
  }

  /** Writes down that this event is about to be sent by a lane that keeps crashing; true when that is durable. */
  async suspect(id: string, key: string | null): Promise<boolean> {
    let written = false;
    await this.inTurn(async () => {
      await this.#write({ ...this.#nothing(), suspects: [{ id, key }] });
      written = true;
    });
    return written;
  }

  /** Runs a write of somebody else in the row of this lane's writes. Resolves when it is done or the lane is lost. */
  inTurn(task: () => Promise<void>): Promise<void> {
    return new Promise((end) => {
      if (this.#signal.aborted) return end();
      this.#tasks.push({ run: task, end });
      this.#start();
    });
  }

  /** Resolves when nothing is left to be written, or the lane is lost. */
  async idle(): Promise<void> {
    while (this.#working !== null) await this.#working;
  }

  #start(): void {
    if (this.#working !== null || this.#signal.aborted) return;
    this.#working = this.#work().finally(() => {
      this.#working = null;
      if (this.#hasWork()) this.#start();
    });
  }

  async #work(): Promise<void> {
    // One turn later, so that outcomes told in the same turn are written together.
    await Promise.resolve();
    while (this.#hasWork() && !this.#signal.aborted) {
      const task = this.#tasks.shift();
      try {
        await (task === undefined ? this.#settleGathered() : task.run());
      } catch (error) {
        this.#drop();
        this.#listener.lost(error);
      } finally {
        task?.end();
      }
    }
  }

  #hasWork(): boolean {
    return (
      this.#tasks.length + this.#failed.length + this.#handedBack.length + this.#releasedHolds.length > 0 ||
      this.#sendNote === "due" ||
      !this.#delivered.isEmpty
    );
  }

  async #settleGathered(): Promise<void> {
    const max = this.#context.limits.settleEventsMax;
    const handedBack = takeFront(this.#handedBack, max);
    // A claim that is handed back and made again was not sent again.
    const isNoteDue = this.#sendNote === "due" || (this.#hasNoted && handedBack.length > 0);
    const sending = isNoteDue ? this.#claims.sentIds().filter((id) => !handedBack.includes(id)) : null;
    if (this.#sendNote === "due") this.#sendNote = "none";
    if (sending !== null) this.#hasNoted = sending.length > 0;
    await this.#write({
      ...this.#nothing(),
      ...this.#delivered.take(max, this.#batch),
      failed: takeFront(this.#failed, max),
      handedBack,
      // After the deliveries they belong to, never before: a hold may only go once its event is marked.
      releasedHolds: this.#delivered.isEmpty ? takeFront(this.#releasedHolds, this.#releasedHolds.length) : [],
      ...(sending === null ? {} : { sending }),
    });
  }

  /** In as many parts as the database needs. */
  async #write(settlement: Settlement): Promise<void> {
    for (let left: Settlement | null = settlement; left !== null; ) {
      const [part, rest] = firstPart(left, this.#size.rows);
      if (await this.#isAccepted(part)) left = rest;
    }
  }

  /**
   * A database that answered "no" (busy, a missing grant, a missing column) promised that nothing took effect: the same
   * rows are written again, however long that takes. Giving up would mean to deliver all of them again. What was too much
   * for it is written in smaller parts.
   */
  async #isAccepted(part: Settlement): Promise<boolean> {
    const { clock, store } = this.#context;
    const startedMs = clock.monotonicMs();
    try {
      const result = await store.settle(part);
      this.#accepted(part, result, clock.monotonicMs() - startedMs);
      return true;
    } catch (error) {
      if (!tookNoEffect(error) || this.#signal.aborted) throw error;
      await this.#refused(error, rowsOf(part), clock.monotonicMs() - startedMs);
      return false;
    }
  }

  #accepted(part: Settlement, result: SettleResult, durationMs: number): void {
    const { events, name } = this.#context;
    this.#tries = 0;
    this.#size.done(rowsOf(part), durationMs);
    this.#batch = part.batch;
    this.#handingBack -= part.handedBack.length;
    // What a former owner delivered it may have marked too: that is no news.
    const vanished = part.ledger === "heal" ? [] : result.missing;
    for (const recordId of vanished) events.emit("EventVanished", { pipeline: name, recordId });
    if (events.wants("BatchSettled")) this.#tell(part, durationMs);
    this.#listener.settled(part, result);
  }

  async #refused(error: RelayError, rows: number, afterMs: number): Promise<void> {
    const { clock, events, name, store, timing } = this.#context;
    const { code } = error;
    this.#tries += 1;
    const about = { pipeline: name, lane: this.#grant.lane, code, tries: this.#tries };
    events.emit("SettleDelayed", { ...about, reason: reasonOf(error), stack: stackOf(error) });
    const isBusy = code === "DATABASE_BUSY";
    if (isBusy) this.#size.gaveUp(rows, afterMs);
    // Half of it may well be taken at once; what was refused as a whole waits longer and longer.
    const doublings = isBusy && rows > 1 ? 0 : this.#tries - 1;
    await clock.sleep(Math.min(timing.backoffMaxMs, timing.backoffInitialMs * 2 ** doublings), this.#signal);
    if (!isBusy || this.#tries >= BUSY_TRIES) this.#listener.refused(error);
    // The table may have changed its shape.
    if (!isBusy) await store.prepare().catch(() => undefined);
  }

  #tell({ delivered, failed }: Settlement, durationMs: number): void {
    const { clock, events, name } = this.#context;
    const latency = this.#latencies.count(delivered, this.#claims.createdAtOf, clock.wallMs());
    const counts = { delivered: delivered.length, failed: failed.length };
    events.emit("BatchSettled", { pipeline: name, lane: this.#grant.lane, ...counts, durationMs, latency });
  }

  #nothing(): Settlement {
    return {
      grant: this.#grant,
      previousBatch: this.#batch,
      batch: this.#batch,
      ledger: "none",
      delivered: [],
      failed: [],
      handedBack: [],
      releasedHolds: [],
      suspects: [],
    };
  }

  /** Nobody waits for ever on the turn of a task that will not come. */
  #drop(): void {
    this.#delivered.clear();
    this.#failed = [];
    this.#handedBack = [];
    this.#releasedHolds = [];
    const tasks = this.#tasks;
    this.#tasks = [];
    for (const task of tasks) task.end();
  }
}

function takeFront<T>(items: T[], count: number): T[] {
  return items.splice(0, count);
}
