import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { Message } from "../core/event.ts";
import { delivered, skipped } from "../core/outcome.ts";
import type { Report } from "../ports/publisher.ts";
import type { Takeover } from "../ports/queue-store.ts";
import type { CommittedBatch, LaneTransactions, Transactions } from "../ports/transactions.ts";
import type { PipelineContext } from "./context.ts";
import { noAnswerWithin, TIMED_OUT, withDeadline } from "./deadline.ts";
import { isAsLeft, strayed } from "./lane-check.ts";
import { unsettledBatches } from "./ledger-check.ts";
import { eventsOfMarks, markOf } from "./ledger-marks.ts";
import type { Sender } from "./sender.ts";

/** To fence a lane may take several times as long as a publish: the broker first ends what the former owner left. */
const FENCE_PUBLISHES = 4;
/** A slow destination gets more time, up to this. */
const STEP_MS_MAX = 60_000;
/** Batches of a lane that are committed and not settled. The rest of the ring is for what a failover forgets. */
const UNSETTLED_MAX = 32;
/** A lane that delivered nothing for so long lets go of its connections. */
const IDLE_MS = 60_000;

/** What it needs of its lane. */
export interface ExactlyOnceHost {
  /** The number of the last batch whose settle was acknowledged. */
  readonly settledBatch: bigint;
  /**
   * Writes down what a former owner delivered; `strangers` are events that only bear the ids of such. Resolves when that
   * is durable or the lane is lost.
   */
  heal(batches: readonly CommittedBatch[], strangers: number): Promise<void>;
  /** What was reported as delivered since the last call is the batch with this number. */
  endBatch(batch: bigint): void;
  /** False: the lease or the lane is gone. */
  maySend(): boolean;
  /** A transaction with these messages got no answer. */
  silent(messages: readonly Message[], startedMs: number): void;
  /** Nobody knows what became of the last transaction, or the lane is not ours: it must be taken over anew. */
  lost(error: unknown): void;
}

/**
 * Delivers a lane's messages exactly once. Each publish is one transaction of the destination, and the transaction
 * notes the ids of its events in the destination's ledger. So whoever owns the lane next knows what was delivered,
 * also when the settle of it was lost.
 *
 * Three rules carry it. Whoever fenced a lane looks at the lane's row only after that: if it is his then, nobody else
 * can deliver. Whatever the ledger has beyond the row was delivered, and is settled before anything is read. And as
 * soon as the effect of a request is unknown, nothing is concluded: the lane is void and taken over anew.
 */
export class ExactlyOnce implements Sender {
  readonly manyOfKey = true;
  readonly keepsTime = true;
  readonly publishesMax = 1;
  readonly #context: PipelineContext;
  readonly #transactions: Transactions;
  readonly #takeover: Takeover;
  readonly #host: ExactlyOnceHost;
  readonly #ended = new AbortController();
  #session: LaneTransactions | null = null;
  /** The last batch in the ledger; 0 while there is none. */
  #inLedger = 0n;
  #last = 0n;
  #isBusy = false;
  #fencedInMs = 0;
  #lateFences = 0;
  #usedAtMs = 0;

  constructor(context: PipelineContext, transactions: Transactions, takeover: Takeover, host: ExactlyOnceHost) {
    this.#context = context;
    this.#transactions = transactions;
    this.#takeover = takeover;
    this.#host = host;
  }

  /** The ledger is a ring: what is not settled yet must not be overwritten, with room to spare for a failover. */
  get hasRoom(): boolean {
    const { ringSize } = this.#transactions;
    return this.#last - this.#host.settledBatch < BigInt(Math.max(1, Math.min(UNSETTLED_MAX, ringSize >> 1)));
  }

  /**
   * Makes the lane fit to deliver, however long the destination needs for that. False when it was closed meanwhile.
   * Rejects when the lane is not ours, when the source cannot be asked, or when ledger and source contradict.
   */
  async open(): Promise<boolean> {
    const { clock, destination, timing } = this.#context;
    while (!this.#isOver) {
      const admission = destination.admission();
      if (admission.admits === "none") {
        await clock.sleep(Math.min(admission.waitMs, timing.pollIntervalMs), this.#ended.signal);
        continue;
      }
      const probe = admission.admits === "probe";
      if (probe) destination.beginProbe();
      try {
        const unsettled = await this.#begin();
        destination.answered(probe);
        if (unsettled.length > 0 && !this.#isOver) await this.#heal(unsettled);
        return !this.#isOver;
      } catch (error) {
        const isOutage = error instanceof Outage && !this.#isOver;
        if (isOutage) destination.failed(error.message, { probe });
        else if (probe) destination.cancelProbe();
        if (!(error instanceof Outage)) throw error;
      }
    }
    return false;
  }

  /**
   * One transaction: all of it is delivered, or nothing. To begin, to send and to end have a time of their own each: a
   * destination that takes long to answer has to answer several times, and a lane that is voided for that would begin
   * with the same again.
   */
  async publish(messages: readonly Message[], report: Report, signal: AbortSignal): Promise<void> {
    this.#isBusy = true;
    const startedMs = this.#now();
    let isSending = false;
    try {
      const session = await this.#readySession(signal);
      if (!this.#host.maySend()) {
        for (const index of messages.keys()) report(index, skipped);
        return;
      }
      const note = { batch: this.#last + 1n, ids: messages.map(({ event }) => markOf(event)) };
      isSending = true;
      const outcomes = await this.#inTime(signal, (inTime) => session.send(messages, note, inTime));
      isSending = false;
      if (outcomes.every(({ kind }) => kind === "delivered")) {
        await this.#inTime(signal, (inTime) => session.commit(inTime));
        this.#last = note.batch;
        this.#inLedger = note.batch;
        for (const index of messages.keys()) report(index, delivered);
        this.#host.endBatch(note.batch);
        return;
      }
      await this.#inTime(signal, (inTime) => session.abort(inTime));
      for (const [index, outcome] of outcomes.entries())
        report(index, outcome.kind === "delivered" ? skipped : outcome);
    } catch (error) {
      // It may have been committed, and a request may still be under way: only the next fence tells.
      const unknown = unknownEffect(this.#context.destination.name, error, this.#stepMs);
      // A connection that broke tells nothing about a single event, only a send that was never answered does.
      const isSilence = isSending && (signal.aborted || error === TIMED_OUT || messages.length > 1);
      if (isSilence && unknown.code === "PUBLISH_UNKNOWN") this.#host.silent(messages, startedMs);
      if (!this.#isOver) this.#host.lost(unknown);
      throw error;
    } finally {
      this.#isBusy = false;
      this.#usedAtMs = this.#now();
    }
  }

  #inTime<T>(signal: AbortSignal, step: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline(this.#context.clock, this.#stepMs, signal, step);
  }

  /** A step needs fewer answers than a fence did: what took so long there is not silence here. */
  get #stepMs(): number {
    return Math.max(this.#context.timing.publishTimeoutMs, Math.min(this.#fencedInMs, STEP_MS_MAX));
  }

  /** As long as a few publishes; twice as long with each time that this was not enough. */
  get #fenceMs(): number {
    const { publishTimeoutMs } = this.#context.timing;
    const patientMs = Math.min(publishTimeoutMs * 2 ** Math.min(this.#lateFences, 10), STEP_MS_MAX);
    return FENCE_PUBLISHES * Math.max(publishTimeoutMs, patientMs);
  }

  /** Lets go of the connections of a lane that has nothing to do. */
  async rest(): Promise<void> {
    if (this.#isBusy || this.#session === null || this.#now() - this.#usedAtMs < IDLE_MS) return;
    const session = this.#session;
    this.#session = null;
    await session.close();
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#session?.close();
  }

  async #begin(): Promise<readonly CommittedBatch[]> {
    const committed = await this.#fence(this.#takeover.settledBatch, this.#ended.signal);
    const unsettled = unsettledBatches(this.#where, this.#takeover, committed);
    this.#inLedger = committed.at(-1)?.batch ?? 0n;
    this.#last = this.#inLedger > this.#takeover.settledBatch ? this.#inLedger : this.#takeover.settledBatch;
    this.#usedAtMs = this.#now();
    return unsettled;
  }

  async #heal(unsettled: readonly CommittedBatch[]): Promise<void> {
    const { batches, strangers } = await eventsOfMarks(this.#context.store, unsettled);
    await this.#host.heal(batches, strangers);
  }

  /** A session that is spent or was let go is replaced; the ledger must then be as this owner left it. */
  async #readySession(signal: AbortSignal): Promise<LaneTransactions> {
    if (this.#session !== null && !this.#session.isSpent) return this.#session;
    const committed = await this.#fence(this.#last, signal);
    if ((committed.at(-1)?.batch ?? 0n) !== this.#inLedger) throw strayed(this.#context.name, this.#lane);
    return this.#session!;
  }

  /** Fences the lane and returns the end of its ledger. The row is looked at in between, neither before nor after. */
  async #fence(after: bigint, signal: AbortSignal): Promise<readonly CommittedBatch[]> {
    const { destination, name, store } = this.#context;
    const { grant } = this.#takeover;
    const startedMs = this.#now();
    await this.#session?.close();
    this.#session = null;
    const { database, firstSlot, lanes, isAtHome } = await store.identity();
    if (!isAtHome)
      throw new RelayError("IDENTITY_CHANGED", `The relay's schema of ${name} was made on another server.`);
    const address = { database, pipeline: name, lane: grant.lane, slot: firstSlot + grant.lane };
    const session = await this.#ask(signal, async (inTime) => {
      await this.#transactions.prepare(firstSlot + lanes);
      return await this.#transactions.fence(address, inTime);
    });
    this.#session = session;
    const settledBatch = this.#host.settledBatch;
    const seen = (await store.survey()).lanes.find(({ lane }) => lane === grant.lane);
    if (!isAsLeft(grant, settledBatch, seen)) throw strayed(name, grant.lane);
    if (this.#isOver) throw new Outage(`${destination.name}: the lane was given up`);
    const committed = await this.#ask(signal, (inTime) => session.lastCommitted(after, inTime));
    this.#fencedInMs = this.#now() - startedMs;
    return committed;
  }

  /** Whatever fails at the destination is an outage of it, unless a person has to put something right. */
  async #ask<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, destination } = this.#context;
    try {
      return await withDeadline(clock, this.#fenceMs, signal, work);
    } catch (error) {
      if (isRelayError(error) && error.code !== "DESTINATION_UNREACHABLE") throw error;
      if (error === TIMED_OUT) this.#lateFences += 1;
      throw new Outage(
        error === TIMED_OUT ? `${destination.name} did not make a lane ready in time` : reasonOf(error),
        { cause: error },
      );
    }
  }

  get #isOver(): boolean {
    return this.#ended.signal.aborted;
  }

  get #lane(): number {
    return this.#takeover.grant.lane;
  }

  get #where(): string {
    return `lane ${this.#lane} of ${this.#context.name}`;
  }

  #now(): number {
    return this.#context.clock.monotonicMs();
  }
}

/** The destination cannot be used at present. */
class Outage extends Error {}

function unknownEffect(destination: string, cause: unknown, stepMs: number): RelayError {
  const error = cause === TIMED_OUT ? noAnswerWithin(destination, stepMs) : cause;
  if (isRelayError(error) && error.code !== "DESTINATION_UNREACHABLE") return error;
  const what = `${destination}: nobody knows what became of a transaction (${reasonOf(error)}); the ledger will tell.`;
  return new RelayError("PUBLISH_UNKNOWN", what, { cause: error });
}
