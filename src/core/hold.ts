/**
 * One row per failing event. While a hold that parks exists, later events of its key wait; nothing is stored for
 * them. `retrying`: tried again when due. `suspect`: written before the send of an event that may crash the relay.
 * `dead`: never tried again by itself.
 */
export interface Hold {
  readonly id: string;
  readonly key: string | null;
  readonly lane: number;
  readonly state: "retrying" | "suspect" | "dead";
  readonly parks: boolean;
  /** Failures so far. */
  readonly attempts: number;
  /** Crashes of the relay while this event was being sent. */
  readonly crashes: number;
  /** From now on, by the database's clock; negative when overdue; null for the dead. */
  readonly dueInMs: number | null;
  /**
   * Set when the event was delivered and its row could not be marked: it is never sent again by itself, and every review
   * tries to mark it. `locked`: another transaction had the row locked. `refused`: the database changed nothing.
   */
  readonly unmarked?: Unmarked;
}

export type Unmarked = "locked" | "refused";

/** What becomes of a key when its head is exhausted. */
export type OnExhausted = "park" | "block" | "skip";
