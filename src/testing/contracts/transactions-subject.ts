import type { Message } from "../../core/event.ts";
import type { Transactions } from "../../ports/transactions.ts";
import type { Received } from "./publisher-subject.ts";

/** What a destination can do in tests; selects the cases that apply to its transactions. */
export interface TransactionsTraits {
  /** It can refuse a single message. */
  readonly refuses: boolean;
  /** It can accept requests without answering. */
  readonly stalls: boolean;
  /** The harness can drop the answer to a commit. */
  readonly losesAnswers: boolean;
}

/** The connection of one process to the destination. */
export interface TransactionsUser {
  readonly transactions: Transactions;
  /** Releases everything, including lanes that were not closed. */
  close(): Promise<void>;
}

/** A destination without messages and without a ledger. */
export interface TransactionsSubject {
  /** A topic that exists or can be created, with a unique name per subject. */
  readonly topic: string;
  /** A new user, as another process would be. Closed by the contract. */
  user(): Promise<TransactionsUser>;
  /** The messages that a `read_committed` consumer has received so far, in order. */
  visible(): Promise<readonly Received[]>;
  /** With `refuses`: changes the message or prepares the destination so that only this message is refused. */
  refuse?(message: Message): Promise<Message>;
  /** With `stalls`. */
  stall?(): Promise<void>;
  resume?(): Promise<void>;
  /** With `losesAnswers`: the next commit takes effect, but its caller gets no answer. */
  loseAnswerToCommit?(): Promise<void>;
  /** Closes the destination. */
  close(): Promise<void>;
}

export interface TransactionsHarness {
  readonly capabilities: TransactionsTraits;
  open(): Promise<TransactionsSubject>;
}
