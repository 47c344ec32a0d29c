import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { type Outcome, skipped } from "../../core/outcome.ts";
import type { CommittedBatch, LaneAddress, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import type { TransactionBroker } from "./memory-transaction-broker.ts";

/** The requests of which a transaction consists. */
export type TransactionStep = "prepare" | "fence" | "read ledger" | "send" | "commit" | "abort";

/** The way from one publisher to the broker. */
interface TransactionLink {
  /** Has the effect and resolves, or rejects when the answer is lost, the broker is down or the signal aborts. */
  request<T>(step: TransactionStep, signal: AbortSignal, effect: () => T): Promise<T>;
  /** What the broker has to say about one message. Rejects when it says nothing. */
  judge(message: Message, signal: AbortSignal): Promise<Outcome>;
}

/** One publisher's transactions at a broker in memory. Others may share the broker, as processes do. */
export function memoryTransactions(broker: TransactionBroker<Message>, link: TransactionLink): Transactions {
  return {
    ringSize: broker.ringSize,
    prepare: (slots) => link.request("prepare", NEVER, () => broker.prepare(slots)),
    async fence(lane, signal) {
      const epoch = await link.request("fence", signal, () => broker.begin(lane));
      return new MemoryLaneTransactions(broker, link, lane, epoch);
    },
  };
}

const NEVER = new AbortController().signal;

class MemoryLaneTransactions implements LaneTransactions {
  readonly #broker: TransactionBroker<Message>;
  readonly #link: TransactionLink;
  readonly #lane: LaneAddress;
  readonly #epoch: number;
  /** `part`: not all of it is in the transaction, so that it can only be aborted. */
  #open: "none" | "part" | "whole" = "none";
  #isSpent = false;

  constructor(broker: TransactionBroker<Message>, link: TransactionLink, lane: LaneAddress, epoch: number) {
    this.#broker = broker;
    this.#link = link;
    this.#lane = lane;
    this.#epoch = epoch;
  }

  get isSpent(): boolean {
    return this.#isSpent;
  }

  lastCommitted(after: bigint, signal: AbortSignal): Promise<readonly CommittedBatch[]> {
    return this.#link.request("read ledger", signal, () => this.#broker.ledger(this.#lane, after));
  }

  send(messages: readonly Message[], note: CommittedBatch, signal: AbortSignal): Promise<readonly Outcome[]> {
    return this.#orSpent(async () => {
      if (this.#open !== "none") throw misuse("the last transaction was neither committed nor aborted");
      this.#open = "part";
      const outcomes: Outcome[] = [];
      for (const message of messages) outcomes.push(await this.#link.judge(message, signal));
      const isWhole = outcomes.every(({ kind }) => kind === "delivered");
      const write = () => this.#broker.write(this.#lane, this.#epoch, messages, isWhole ? note : null);
      await this.#link.request("send", signal, write);
      if (!isWhole) {
        this.#isSpent = true;
        return outcomes.map((outcome) => (outcome.kind === "delivered" ? skipped : outcome));
      }
      this.#open = "whole";
      return outcomes;
    });
  }

  commit(signal: AbortSignal): Promise<void> {
    return this.#orSpent(async () => {
      if (this.#open !== "whole") throw misuse("there is no transaction to commit");
      await this.#link.request("commit", signal, () => {
        this.#broker.decide(this.#lane, this.#epoch);
        this.#broker.complete(this.#lane);
      });
      this.#open = "none";
    });
  }

  abort(signal: AbortSignal): Promise<void> {
    return this.#orSpent(async () => {
      if (this.#open === "none") return;
      await this.#link.request("abort", signal, () => this.#broker.abort(this.#lane, this.#epoch));
      this.#open = "none";
    });
  }

  async close(): Promise<void> {
    this.#isSpent = true;
    this.#open = "part";
  }

  /** After an error nobody knows what is still under way. */
  async #orSpent<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#isSpent = true;
      throw error;
    }
  }
}

function misuse(what: string): RelayError {
  return new RelayError("PUBLISH_FAILED", `The transaction is refused: ${what}.`);
}
