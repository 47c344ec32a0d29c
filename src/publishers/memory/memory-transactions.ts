import { RelayError } from "../../core/errors.ts";
import type { Message } from "../../core/event.ts";
import { type Outcome, skipped } from "../../core/outcome.ts";
import type { CommittedBatch, LaneAddress, LaneTransactions, Transactions } from "../../ports/transactions.ts";
import type { TransactionBroker } from "./memory-transaction-broker.ts";

/** The kinds of requests of a transaction. */
export type TransactionStep = "prepare" | "fence" | "read ledger" | "send" | "commit" | "abort";

/** The connection of one publisher to the broker. */
interface TransactionLink {
  /** Applies the effect and resolves. Rejects when the answer is lost, the broker is down or the signal aborts. */
  request<T>(step: TransactionStep, signal: AbortSignal, effect: () => T): Promise<T>;
  /** The broker's outcome for one message. Rejects when it gives no answer. */
  judge(message: Message, signal: AbortSignal): Promise<Outcome>;
}

/** One publisher's transactions at a broker in memory. Other publishers may share the broker. */
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
  /** `part`: the transaction is incomplete and can only be aborted. */
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

  /** After an error the state of running requests is unknown, so the lane must be fenced again. */
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
