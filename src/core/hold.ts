/**
 * The stored row of a failing event. While a hold that parks exists, later events of its key wait; nothing is stored
 * for them. `retrying`: retried when due. `suspect`: written before the send of an event that may crash the relay.
 * `dead`: not retried automatically.
 */
export interface Hold {
  readonly id: string;
  readonly key: string | null;
  readonly lane: number;
  readonly state: "retrying" | "suspect" | "dead";
  readonly parks: boolean;
  /** Failures so far. */
  readonly attempts: number;
  /** Crashes of the relay while it sent this event. */
  readonly crashes: number;
  /** The time until the next attempt, by the database's clock; negative when overdue; null for a dead event. */
  readonly dueInMs: number | null;
  /**
   * Set when the event was delivered but its row could not be marked. The relay never sends it again, and every review
   * tries to mark it. `locked`: another transaction had locked the row. `refused`: the update changed nothing.
   */
  readonly unmarked?: Unmarked;
}

/** Why a delivered row could not be marked. */
export type Unmarked = "locked" | "refused";

/** What happens to a key when its first event has no attempts left. */
export type OnExhausted = "park" | "block" | "skip";
