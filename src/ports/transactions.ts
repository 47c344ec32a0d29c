import type { Message } from "../core/event.ts";
import type { Outcome } from "../core/outcome.ts";

/** A lane in the eyes of a destination: the same for every owner it ever has, and different for any other database. */
export interface LaneAddress {
  /** Of the database, made once by its migration and never changed. */
  readonly database: string;
  readonly pipeline: string;
  readonly lane: number;
  /** A number of its own among all lanes of the database, small and without gaps. */
  readonly slot: number;
}

/** What one committed transaction carried. */
export interface CommittedBatch {
  readonly batch: bigint;
  /** The ids of its events; never a position, because a database that lost its last commits has other positions. */
  readonly ids: readonly string[];
}

/**
 * Several messages and a note of them in one transaction of the destination: all of it becomes visible or nothing. The
 * notes of a lane are its **ledger**, a ring of the last batches. With it the next owner of a lane knows what was
 * delivered and not yet settled; that makes delivery exactly once.
 */
export interface Transactions {
  /** Batches of a lane that the ledger keeps. */
  readonly ringSize: number;

  /**
   * Makes sure that the ledger exists, has a place for so many slots and keeps what it is told, and that this process
   * may use transactions at all. Legal to repeat; safe beside others. Throws LEDGER_UNFIT or TRANSACTIONS_REFUSED with
   * the way out when that is not so, and DESTINATION_UNREACHABLE when nobody knows.
   */
  prepare(slots: number): Promise<void>;

  /**
   * Fences every former user of this lane. Afterwards none of their transactions can become visible any more: what was
   * open is aborted, what was being committed is visible, and requests of theirs that are still under way have no
   * effect. Whoever calls it must then make sure that the lane is still his: it also fences the rightful owner.
   */
  fence(lane: LaneAddress, signal: AbortSignal): Promise<LaneTransactions>;
}

/** The transactions of one lane, one at a time, until the lane is fenced by somebody or this is closed. */
export interface LaneTransactions {
  /**
   * The batches with a number above `after` whose transactions were committed, in rising order, as far as the ring
   * still has them; where nothing is above, the last one, if there is any.
   */
  lastCommitted(after: bigint, signal: AbortSignal): Promise<readonly CommittedBatch[]>;

  /**
   * Puts the messages, in their order, and the note of them into a new transaction. Returns their outcomes: all
   * `delivered` means that it may be committed. Otherwise it must be aborted; those that are not at fault are `skipped`.
   * A rejected promise means that nobody knows what arrived: then only a new fence helps.
   */
  send(messages: readonly Message[], note: CommittedBatch, signal: AbortSignal): Promise<readonly Outcome[]>;

  /** Resolves when all of it is visible for good. Rejected: it may or may not be, and may still become so. */
  commit(signal: AbortSignal): Promise<void>;

  /** Resolves when nothing of it is or ever becomes visible. Rejected: only a new fence helps. */
  abort(signal: AbortSignal): Promise<void>;

  /**
   * True when it must not be used for another transaction, because a request of the last one may still be under way
   * and would hit the next: the lane has to be fenced anew.
   */
  readonly isSpent: boolean;

  /** Lets go of connections at once; an open transaction is left for the next fence. Legal at any time, also twice. */
  close(): Promise<void>;
}
