import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import type { Outcome } from "../../core/outcome.ts";
import type { CommittedBatch, LaneAddress, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import { checkLease, type Way } from "./message-judge.ts";
import { type Broker, drawFault, TransactionRequest, unanswered } from "./transaction-request.ts";
import { TransactionSend } from "./transaction-send.ts";

/** A process's transactions at a destination, with faults at every request. */
export class FaultyTransactions implements Transactions {
  readonly ringSize: number;
  readonly #way: Way;
  readonly #broker: Broker;

  constructor(way: Way, broker: Broker) {
    this.ringSize = broker.ringSize;
    this.#way = way;
    this.#broker = broker;
  }

  prepare(slots: number): Promise<void> {
    const { signal } = new AbortController();
    const effect = () => this.#broker.prepare(slots);
    return TransactionRequest.ask(this.#way, this.#broker, { name: "prepare", lane: null, signal, effect });
  }

  async fence(lane: LaneAddress, signal: AbortSignal): Promise<LaneTransactions> {
    const effect = (): number => {
      const epoch = this.#broker.begin(lane);
      const { world, process } = this.#way;
      world.history.note(process.name, `${lane.pipeline}: fenced lane ${lane.lane}, broker's epoch ${epoch}`);
      return epoch;
    };
    const epoch = await TransactionRequest.ask(this.#way, this.#broker, { name: "fence", lane, signal, effect });
    return new FaultyLaneTransactions(this.#way, this.#broker, lane, epoch);
  }
}

class FaultyLaneTransactions implements LaneTransactions {
  readonly #way: Way;
  readonly #broker: Broker;
  readonly #lane: LaneAddress;
  readonly #epoch: number;
  /** `part`: some messages are missing from the transaction, so it can only be aborted. */
  #open: "none" | "part" | "whole" = "none";
  #hasWritten = false;
  #isSpent = false;
  #isClosed = false;

  constructor(way: Way, broker: Broker, lane: LaneAddress, epoch: number) {
    this.#way = way;
    this.#broker = broker;
    this.#lane = lane;
    this.#epoch = epoch;
  }

  get isSpent(): boolean {
    return this.#isSpent;
  }

  lastCommitted(after: bigint, signal: AbortSignal): Promise<readonly CommittedBatch[]> {
    return this.#ask("ledger", signal, () => this.#broker.ledger(this.#lane, after));
  }

  async send(messages: readonly Message[], note: CommittedBatch, signal: AbortSignal): Promise<readonly Outcome[]> {
    checkLease(this.#way);
    this.#checkUse(this.#open === "none", "begins a transaction before the last one has ended");
    this.#open = "part";
    this.#hasWritten = false;
    const { address, epoch } = { address: this.#lane, epoch: this.#epoch };
    const sending = new Promise<readonly Outcome[]>((resolve, reject) => {
      const drawn = drawFault(this.#way, "send");
      if (drawn === null) return;
      const { fault } = drawn;
      if (fault === "retried without an answer") this.#isSpent = true;
      const onWrite = () => {
        this.#hasWritten = true;
      };
      const sent = { messages, note, fault, signal, onWrite, answer: { resolve, reject } };
      const send = new TransactionSend(this.#way, this.#broker, { address, epoch }, sent);
      this.#way.process.reach(0, () => send.start());
    });
    const outcomes = await this.#orSpent(sending);
    if (outcomes.every(({ kind }) => kind === "delivered")) this.#open = "whole";
    else this.#isSpent = true;
    return outcomes;
  }

  async commit(signal: AbortSignal): Promise<void> {
    this.#checkUse(this.#open === "whole", "commits an incomplete transaction");
    const committing = this.#ask("commit", signal, () => {
      this.#broker.decide(this.#lane, this.#epoch);
      const { random, time } = this.#way.world;
      time.after(random.between(0, 30), () => this.#broker.complete(this.#lane));
    });
    await this.#orSpent(committing);
    this.#open = "none";
  }

  async abort(signal: AbortSignal): Promise<void> {
    if (this.#open === "none") return;
    const abort = () => {
      // If the first message was refused, no transaction began.
      const isEmpty = !this.#hasWritten && this.#broker.openIn(this.#lane) === null;
      if (!isEmpty) this.#broker.abort(this.#lane, this.#epoch);
    };
    await this.#orSpent(this.#ask("abort", signal, abort));
    this.#open = "none";
  }

  async close(): Promise<void> {
    this.#isSpent = true;
    this.#isClosed = true;
  }

  #ask<T>(name: "ledger" | "commit" | "abort", signal: AbortSignal, effect: () => T): Promise<T> {
    if (this.#isClosed) return Promise.reject(unanswered(this.#way.broker.options.name, name));
    const onCopy = () => {
      if (name !== "ledger") this.#isSpent = true;
    };
    return TransactionRequest.ask(this.#way, this.#broker, { name, lane: this.#lane, signal, effect, onCopy });
  }

  async #orSpent<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      this.#isSpent = true;
      throw error;
    }
  }

  /** A real client rejects this use, and an engine that tries it is wrong. */
  #checkUse(isRight: boolean, what: string): void {
    if (this.#isClosed) throw unanswered(this.#way.broker.options.name, "a closed session");
    if (isRight) return;
    this.#way.world.history.violate("X", `${this.#way.process.name} ${what}`);
    throw new RelayError("PUBLISH_FAILED", `Invalid use of a transaction: it ${what}.`);
  }
}
