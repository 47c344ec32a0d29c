import type { Message } from "../../core/event.ts";
import type { Transactions } from "../../ports/transactions.ts";
import type { Received } from "./publisher-subject.ts";

/** What a destination can be made to do; chooses the cases that bind its transactions. */
export interface TransactionsTraits {
  /** It can refuse a single message. */
  readonly refuses: boolean;
  /** It can be made to take requests without answering. */
  readonly stalls: boolean;
  /** The harness can keep the answer to a commit from arriving. */
  readonly losesAnswers: boolean;
}

/** One process's way to the destination. */
export interface TransactionsUser {
  readonly transactions: Transactions;
  /** Lets go of everything, the lanes that were not closed included. */
  close(): Promise<void>;
}

/** A destination without messages and without a ledger. */
export interface TransactionsSubject {
  /** A topic that exists or may be created, with a name of its own per subject. */
  readonly topic: string;
  /** A user of its own, as another process would be. Closed by the contract. */
  user(): Promise<TransactionsUser>;
  /** What a consumer who sees committed transactions only has received by now, in its order. */
  visible(): Promise<readonly Received[]>;
  /** With `refuses`: changes the message, or prepares the destination, so that this one alone is refused. */
  refuse?(message: Message): Promise<Message>;
  /** With `stalls`. */
  stall?(): Promise<void>;
  resume?(): Promise<void>;
  /** With `losesAnswers`: the next commit takes effect, and whoever asked for it is never told. */
  loseAnswerToCommit?(): Promise<void>;
  /** Of the destination. */
  close(): Promise<void>;
}

export interface TransactionsHarness {
  readonly capabilities: TransactionsTraits;
  open(): Promise<TransactionsSubject>;
}
