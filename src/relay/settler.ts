import { backoffMs } from "../core/backoff.ts";
import { type RelayError, reasonOf, stackOf, tookNoEffect } from "../core/errors.ts";
import { LatencyCounter } from "../core/latency.ts";
import type { Failure, Grant, Settlement, SettleResult, Takeover } from "../ports/queue-store.ts";
import type { CommittedBatch } from "../ports/transactions.ts";
import type { PipelineContext } from "./context.ts";
import { DeliveredBuffer } from "./delivered-buffer.ts";
import type { LaneClaims } from "./lane-claims.ts";
import { firstPart, rowsOf, SettleSize } from "./settle-parts.ts";

/** When the database is busy for this many attempts of one write, the health reports it. */
const BUSY_TRIES = 4;

/** What the settler reports to its lane. */
export interface SettlerListener {
  /** The settlement is durable. */
  settled(settlement: Settlement, result: SettleResult): void;
  /** The source refuses the write, or has been busy for several attempts. The settler retries. */
  refused(error: unknown): void;
  /** The effect of a write is unknown, or the lane has another owner: everything in memory is void. */
  lost(error: unknown): void;
}

type KnownClaims = Pick<LaneClaims, "createdAtOf" | "sentIds">;

interface Task {
  readonly run: () => Promise<void>;
  /** Resolves the caller's promise, whether the task ran or not. */
  readonly end: () => void;
}

/** An event that is answered within this time is settled without a note that it was sent. */
const NOTE_AFTER_MS = 50;

/**
 * Writes a lane's outcomes back, strictly one write after the other: each settle names the batch of the one before, so
 * two at once would fence each other. Outcomes that arrive during a write go into the next one. Other writes of the
 * lane (review of holds, suspects) wait in the same queue, so that none sees half of another.
 */
export class Settler {
  readonly #context: PipelineContext;
  readonly #grant: Grant;
  readonly #listener: SettlerListener;
  readonly #signal: AbortSignal;
  readonly #delivered = new DeliveredBuffer();
  readonly #claims: KnownClaims;
  readonly #latencies = new LatencyCounter();
  readonly #size: SettleSize;
  /** Failed attempts of the present write. */
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
    // A batch of a ledger is written as a whole, as long as the database accepts it.
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

  /**
   * The events were delivered. `releasedHolds` are those whose hold is deleted together with the mark. With a ledger
   * they are one batch of it, by its number: a settle never writes part of one.
   */
  delivered(ids: readonly string[], releasedHolds: readonly string[], batch: bigint | null): void {
    this.#delivered.add(ids);
    this.#releasedHolds.push(...releasedHolds);
    if (batch !== null) this.#delivered.endBatch(batch, "batch");
    this.#start();
  }

  /** Settles what a former owner delivered. Resolves when that is durable or the lane is lost. */
  async heal(batches: readonly CommittedBatch[], hasHold: (id: string) => boolean): Promise<void> {
    for (const { batch, ids } of batches) {
      this.#delivered.add(ids);
      this.#delivered.endBatch(batch, "heal");
      this.#releasedHolds.push(...ids.filter(hasHold));
    }
    this.#start();
    await this.idle();
  }

  /** The event failed: its hold or dead letter is written. */
  failed(failure: Failure): void {
    this.#failed.push(failure);
    this.#start();
  }

  /** Gives claims of events back that were never sent. Costs nothing where claims are not durable. */
  handBack(ids: readonly string[]): void {
    if (this.#context.store.durableClaims === null) return;
    this.#handedBack.push(...ids);
    this.#handingBack += ids.length;
    if (ids.length > 0) this.#start();
  }

  /** True until all handed-back events can be claimed again: a later event of their keys must not be claimed first. */
  get isHandingBack(): boolean {
    return this.#handingBack > 0;
  }

  /**
   * Stores which claimed events were sent, so that the next owner knows it if this process dies. It waits a moment
   * first, because most events are settled by then and need no note.
   */
  noteSending(): void {
    if (this.#sendNote !== "none") return;
    this.#sendNote = "soon";
    void this.#context.clock.sleep(NOTE_AFTER_MS, this.#signal).then(() => {
      this.#sendNote = this.#signal.aborted || this.#claims.sentIds().length === 0 ? "none" : "due";
      this.#start();
    });
  }

  /** Deletes holds whose rows are gone. */
  releaseHolds(ids: readonly string[]): void {
    this.#releasedHolds.push(...ids);
    if (ids.length > 0) this.#start();
  }

  /** Stores that a crashing lane is about to send this event. True when that is durable; the send must wait for it. */
  async suspect(id: string, key: string | null): Promise<boolean> {
    let written = false;
    await this.runExclusive(async () => {
      await this.#write({ ...this.#nothing(), suspects: [{ id, key }] });
      written = true;
    });
    return written;
  }

  /** Runs another write of the lane while no settle is in progress. Resolves when it is done or the lane is lost. */
  runExclusive(task: () => Promise<void>): Promise<void> {
    return new Promise((end) => {
      if (this.#signal.aborted) return end();
      this.#tasks.push({ run: task, end });
      this.#start();
    });
  }

  /** Resolves when everything is written, or the lane is lost. */
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
    // One microtask later, so that outcomes reported in the same turn are written together.
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
    // An event that is handed back and claimed again has not been sent again: its note must go.
    const isNoteDue = this.#sendNote === "due" || (this.#hasNoted && handedBack.length > 0);
    const sending = isNoteDue ? this.#claims.sentIds().filter((id) => !handedBack.includes(id)) : null;
    if (this.#sendNote === "due") this.#sendNote = "none";
    if (sending !== null) this.#hasNoted = sending.length > 0;
    await this.#write({
      ...this.#nothing(),
      ...this.#delivered.take(max, this.#batch),
      failed: takeFront(this.#failed, max),
      handedBack,
      // Holds go after their deliveries, never before: a hold may only go once its event is marked.
      releasedHolds: this.#delivered.isEmpty ? takeFront(this.#releasedHolds, this.#releasedHolds.length) : [],
      ...(sending === null ? {} : { sending }),
    });
  }

  /** Writes a settlement, in as many parts as the database needs. */
  async #write(settlement: Settlement): Promise<void> {
    for (let left: Settlement | null = settlement; left !== null; ) {
      const [part, rest] = firstPart(left, this.#size.rows);
      const result = await this.#settled(part);
      if (result !== null) left = rest && { ...rest, releasedHolds: withoutUnmarked(rest.releasedHolds, result) };
    }
  }

  /**
   * When the database refuses a write (busy, a missing grant, a missing column), nothing of it took effect, so the same
   * rows are written again, however long that takes: giving up would deliver all of them again. A write that was too
   * large is repeated in smaller parts. Returns null then.
   */
  async #settled(part: Settlement): Promise<SettleResult | null> {
    const { clock, store } = this.#context;
    const startedMs = clock.monotonicMs();
    try {
      const result = await store.settle(part);
      this.#accepted(part, result, clock.monotonicMs() - startedMs);
      return result;
    } catch (error) {
      if (!tookNoEffect(error) || this.#signal.aborted) throw error;
      await this.#refused(error, rowsOf(part), clock.monotonicMs() - startedMs);
      return null;
    }
  }

  #accepted(part: Settlement, result: SettleResult, durationMs: number): void {
    const { events, name } = this.#context;
    this.#tries = 0;
    this.#size.done(rowsOf(part), durationMs);
    this.#batch = part.batch;
    this.#handingBack -= part.handedBack.length;
    this.#releasedHolds = withoutUnmarked(this.#releasedHolds, result);
    // The former owner may have marked what it delivered: that is not worth a report.
    const vanished = part.ledger === "heal" ? [] : result.missing;
    for (const recordId of vanished) events.emit("EventVanished", { pipeline: name, recordId });
    if (events.wants("BatchSettled")) this.#report(part, durationMs);
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
    // Half of a large write may succeed at once; a write that cannot be halved waits longer with each attempt.
    const doublings = isBusy && rows > 1 ? 0 : this.#tries - 1;
    const range = { firstMs: timing.backoffInitialMs, lastMs: timing.backoffMaxMs };
    await clock.sleep(backoffMs(range, doublings), this.#signal);
    if (!isBusy || this.#tries >= BUSY_TRIES) this.#listener.refused(error);
    // The table may have changed: read its columns again.
    if (!isBusy) await store.prepare().catch(() => undefined);
  }

  #report({ delivered, failed }: Settlement, durationMs: number): void {
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

  /** Drops everything that was not written. Tasks that will not run are resolved, so that no caller waits for ever. */
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

/**
 * A delivered event whose row could not be marked is held from then on. A release that was meant for its former hold
 * would delete the new one, and the event would be sent again.
 */
function withoutUnmarked(releasedHolds: readonly string[], { unmarked }: SettleResult): string[] {
  return releasedHolds.filter((id) => unmarked?.has(id) !== true);
}

function takeFront<T>(items: T[], count: number): T[] {
  return items.splice(0, count);
}
