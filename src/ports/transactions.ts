import type { Message } from "../core/event.ts";
import type { Outcome } from "../core/outcome.ts";

/** How a destination identifies a lane: the same for every owner of the lane, and unique across databases. */
export interface LaneAddress {
  /** The database's own id, generated once by the migration and never changed. */
  readonly database: string;
  readonly pipeline: string;
  readonly lane: number;
  /** A number that no other lane of the database has; the numbers are small and without gaps. */
  readonly slot: number;
}

/** The events of one committed transaction. */
export interface CommittedBatch {
  readonly batch: bigint;
  /** The ids of the events, never their positions: a database that lost its last commits has other positions. */
  readonly ids: readonly string[];
}

/**
 * Publishes several messages and a record of their ids in one transaction of the destination: all of it becomes visible
 * or nothing. The records of a lane are its **ledger**, a ring of the last batches. From the ledger the next owner of a
 * lane learns which events were delivered but not settled; that makes delivery exactly once.
 */
export interface Transactions {
  /** The number of batches that the ledger keeps per lane. */
  readonly ringSize: number;

  /**
   * Makes sure that the ledger exists, has room for this many slots and keeps its records, and that this process may
   * use transactions. Legal to repeat; safe with concurrent callers. Throws LEDGER_UNFIT or TRANSACTIONS_REFUSED with
   * the fix, or DESTINATION_UNREACHABLE when the check was not possible.
   */
  prepare(slots: number): Promise<void>;

  /**
   * Checks what `prepare` checks, as far as that shows without writing anything, and throws as it does. Returns what
   * `prepare` would create. Absent where nothing can be checked.
   */
  examine?(slots: number): Promise<readonly string[]>;

  /**
   * Fences every former user of this lane. Afterwards none of their transactions can become visible: an open
   * transaction is aborted, one that was being committed is visible, and their requests that are still on the wire have
   * no effect. The caller must then check that it still owns the lane, because a fence also stops the rightful owner.
   */
  fence(lane: LaneAddress, signal: AbortSignal): Promise<LaneTransactions>;
}

/** The transactions of one lane, one at a time, until another user fences the lane or this is closed. */
export interface LaneTransactions {
  /**
   * The committed batches with a number above `after`, in rising order, as far as the ring still has them. When there
   * is none, the last batch of the ledger, if it has any.
   */
  lastCommitted(after: bigint, signal: AbortSignal): Promise<readonly CommittedBatch[]>;

  /**
   * Sends the messages in order, and the record of them, in a new transaction. Returns their outcomes. When all are
   * `delivered`, the caller may commit; otherwise it must abort, and messages that are not at fault are `skipped`. A
   * rejected promise means that it is unknown what arrived: the caller must fence the lane again.
   */
  send(messages: readonly Message[], note: CommittedBatch, signal: AbortSignal): Promise<readonly Outcome[]>;

  /** Resolves when the transaction is visible for good. Rejected: it may be visible, or may still become so. */
  commit(signal: AbortSignal): Promise<void>;

  /**
   * Resolves when nothing of the transaction is visible or can become so. Rejected: the caller must fence the lane
   * again.
   */
  abort(signal: AbortSignal): Promise<void>;

  /**
   * True when no further transaction may use this session: a request of the last one may still be on the wire and would
   * take effect in the next one. The caller must fence the lane again.
   */
  readonly isSpent: boolean;

  /** Closes the connections at once; the next fence ends an open transaction. Legal at any time, also twice. */
  close(): Promise<void>;
}
