import { backoffMs } from "../core/backoff.ts";
import { isRelayError, RelayError, reasonOf } from "../core/errors.ts";
import type { Message } from "../core/event.ts";
import { skipped } from "../core/outcome.ts";
import type { Takeover } from "../ports/queue-store.ts";
import type { CommittedBatch, LaneTransactions, Transactions } from "../ports/transactions.ts";
import type { PipelineContext } from "./context.ts";
import { noAnswerWithin, TIMED_OUT, withDeadline } from "./deadline.ts";
import { isUnchanged, laneMoved } from "./lane-check.ts";
import { unsettledBatches } from "./ledger-check.ts";
import { eventsOfMarks, markOf } from "./ledger-marks.ts";
import type { Answers, Sender } from "./sender.ts";

/** A fence may take several times as long as a publish: the broker first ends the transactions of the former owner. */
const FENCE_PUBLISHES = 4;
/** The bound of the time that a slow destination gets per step. */
const STEP_MS_MAX = 60_000;
/**
 * Batches of a lane that may be committed but not settled. The rest of the ring is for settles that a failover loses.
 */
const UNSETTLED_MAX = 32;
/** A lane that delivered nothing for this long closes its connections. */
const IDLE_MS = 60_000;

/** What exactly-once delivery needs of its lane. */
export interface ExactlyOnceHost {
  /** The number of the last batch whose settle was acknowledged. */
  readonly settledBatch: bigint;
  /**
   * Settles what a former owner delivered. `reusedIds` counts new events that have the id of a delivered one. Resolves
   * when the settle is durable or the lane is lost.
   */
  heal(batches: readonly CommittedBatch[], reusedIds: number): Promise<void>;
  /** False when the lease or the lane is gone. */
  maySend(): boolean;
  /** A transaction with these messages got no answer. */
  unanswered(messages: readonly Message[], startedMs: number): void;
  /** The fate of the last transaction is unknown, or another instance owns the lane: it must be taken over again. */
  lost(error: unknown): void;
}

/**
 * Delivers a lane's messages exactly once. Each publish is one transaction of the destination, and the transaction
 * records the ids of its events in the destination's ledger. The next owner of the lane reads there what was delivered,
 * even if the settle was lost.
 *
 * It rests on three rules. After a fence, and only then, the owner reads the lane's row: if the row still names it, no
 * other instance can deliver. Events that the ledger has beyond the row were delivered, so they are settled before
 * anything is read. And as soon as the effect of a request is unknown, nothing is assumed: the lane is void and must be
 * taken over again.
 */
export class ExactlyOnce implements Sender {
  readonly manyOfKey = true;
  readonly keepsTime = true;
  readonly timesRequests = false;
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

  /**
   * The ledger is a ring: batches that are not settled must not be overwritten, and a failover needs some of the room.
   */
  get hasRoom(): boolean {
    const { ringSize } = this.#transactions;
    return this.#last - this.#host.settledBatch < BigInt(Math.max(1, Math.min(UNSETTLED_MAX, ringSize >> 1)));
  }

  /**
   * Makes the lane ready to deliver, however long the destination needs for that. False when it was closed in the
   * meantime. Rejects when another instance owns the lane, the source does not answer, or ledger and source contradict.
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
   * Publishes one transaction: all of its messages are delivered, or none. Begin, send and commit each have a timeout
   * of their own, because a slow destination has to answer each of them; one timeout for all would void the lane, and
   * the next owner would run into it again.
   */
  async publish(messages: readonly Message[], { report, committed }: Answers, signal: AbortSignal): Promise<void> {
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
        committed(note.batch);
        return;
      }
      await this.#inTime(signal, (inTime) => session.abort(inTime));
      for (const [index, outcome] of outcomes.entries())
        report(index, outcome.kind === "delivered" ? skipped : outcome);
    } catch (error) {
      // It may have been committed, and a request may still be on the wire: only the next fence finds out.
      const unknown = unknownEffect(this.#context.destination.name, error, this.#stepMs);
      // A broken connection proves nothing about a single event; only a send that was never answered does.
      const isUnanswered = isSending && (signal.aborted || error === TIMED_OUT || messages.length > 1);
      if (isUnanswered && unknown.code === "PUBLISH_UNKNOWN") this.#host.unanswered(messages, startedMs);
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

  /** The timeout of a step. A step needs fewer answers than a fence, so the last fence's duration is long enough. */
  get #stepMs(): number {
    return Math.max(this.#context.timing.publishTimeoutMs, Math.min(this.#fencedInMs, STEP_MS_MAX));
  }

  /** The timeout of a fence: a few publishes; it doubles with each fence that came too late. */
  get #fenceMs(): number {
    const { publishTimeoutMs } = this.#context.timing;
    const doubledMs = backoffMs({ firstMs: publishTimeoutMs, lastMs: STEP_MS_MAX }, this.#lateFences);
    return FENCE_PUBLISHES * Math.max(publishTimeoutMs, doubledMs);
  }

  /** Closes the connections of a lane that is idle. */
  async rest(): Promise<void> {
    if (this.#isBusy || this.#session === null || this.#now() - this.#usedAtMs < IDLE_MS) return;
    const session = this.#session;
    this.#session = null;
    await session.close();
  }

  /** Ends an `open` that still waits, and closes the connections. */
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
    const { batches, reusedIds } = await eventsOfMarks(this.#context.store, unsettled);
    await this.#host.heal(batches, reusedIds);
  }

  /** Replaces a session that is spent or was closed. The ledger must then end with this owner's last batch. */
  async #readySession(signal: AbortSignal): Promise<LaneTransactions> {
    if (this.#session !== null && !this.#session.isSpent) return this.#session;
    const committed = await this.#fence(this.#last, signal);
    if ((committed.at(-1)?.batch ?? 0n) !== this.#inLedger) throw laneMoved(this.#context.name, this.#lane);
    return this.#session!;
  }

  /**
   * Fences the lane and returns the end of its ledger. It reads the lane's row in between, neither before nor after: a
   * row read before the fence may have another owner by then, and a ledger read before the row may be behind a new
   * owner.
   */
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
    if (!isUnchanged(grant, settledBatch, seen)) throw laneMoved(name, grant.lane);
    if (this.#isOver) throw new Outage(`${destination.name}: the lane was closed while it was fenced`);
    const committed = await this.#ask(signal, (inTime) => session.lastCommitted(after, inTime));
    this.#fencedInMs = this.#now() - startedMs;
    return committed;
  }

  /** Treats each failure of the destination as an outage, unless an operator has to fix something. */
  async #ask<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, destination } = this.#context;
    try {
      return await withDeadline(clock, this.#fenceMs, signal, work);
    } catch (error) {
      if (isRelayError(error) && error.code !== "DESTINATION_UNREACHABLE") throw error;
      if (error === TIMED_OUT) this.#lateFences += 1;
      throw new Outage(error === TIMED_OUT ? `${destination.name} did not fence a lane in time` : reasonOf(error), {
        cause: error,
      });
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
  const what =
    `${destination}: it is unknown whether a transaction was committed (${reasonOf(error)}). ` +
    "The relay finds out from the ledger.";
  return new RelayError("PUBLISH_UNKNOWN", what, { cause: error });
}
