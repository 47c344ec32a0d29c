import type { SeededRandom } from "./seeded-random.ts";

/** Faults of one store call. */
export const CALL_FAULTS = [
  "slow request",
  "late answer",
  "error before effect",
  "error after effect",
  "busy",
  "refused",
  "late commit",
  "crash before call",
  "crash after effect",
  "pause before call",
  "pause before answer",
] as const;

/** Additional faults of a lease renewal: too late, or almost too late. */
export const RENEWAL_FAULTS = ["late renewal"] as const;

/** Faults of a whole publish. */
export const PUBLISH_FAULTS = [
  "slow publish",
  "connection lost",
  "crash before publish",
  "crash amid publish",
  "pause before publish",
  "pause amid publish",
] as const;

/** Faults of one message. */
export const MESSAGE_FAULTS = [
  "retry event",
  "retry after",
  "retry topic",
  "retry destination",
  "rejected",
  "failed after effect",
  "hang",
  "hang after effect",
  "row deleted in flight",
  "row marked in flight",
] as const;

/** Faults of one transaction request. */
export const TRANSACTION_FAULTS = [
  "slow transaction",
  "transaction request lost",
  "transaction answer lost",
  "late transaction request",
  "retried without an answer",
  "connection lost in transaction",
  "transaction timed out",
  "crash before transaction",
  "crash amid transaction",
  "pause before transaction",
  "pause amid transaction",
] as const;

/** Additional faults of reading the ledger. */
export const LEDGER_FAULTS = ["ledger unreachable"] as const;

/** Faults at a time that the scenario lists. */
export const TIMED_FAULTS = [
  "crash",
  "pause",
  "suspend",
  "graceful stop",
  "process clock step",
  "database down",
  "failover",
  "database clock forward",
  "database clock back",
  "destination down",
  "topic down",
  "held row deleted",
  "held row marked",
  "dead letter replayed",
] as const;

/** Timed faults of later seeds. */
export const LATER_TIMED_FAULTS = ["instance taken for dead"] as const;

/** An operator pauses a pipeline for a while, with or without its lanes. */
export const PAUSE_FAULTS = ["pipeline paused"] as const;

/** A column is dropped and added again; maintenance locks the table, which blocks reads. */
export const TABLE_FAULTS = ["column missing", "maintenance lock"] as const;
/** A trigger or a policy undoes the update that marks rows. */
const MARK_FAULTS = ["marks refused"] as const;

/** Faults of an event itself: it fails whenever it is sent. */
export const EVENT_FAULTS = [
  "poison",
  "flaky",
  "always rejected",
  "never answered",
  "crash poison",
  "unreadable",
  "too large",
  "slow key",
  "late writer",
  "id given out again",
] as const;

/**
 * Faults that stay after all others are over: an event that is always refused with the scope of its topic or destination; a
 * destination that accepts the events of one key only; rows that exceed the memory limit, in any column.
 */
const PERSISTENT_FAULTS = ["refused as topic", "refused as destination", "one key only", "wide row"] as const;

/** Longer than all other faults together: only a few seeds have it. */
const LONG_FAULTS = ["hour-long outage"] as const;

export const FAULT_KINDS = [
  ...CALL_FAULTS,
  ...RENEWAL_FAULTS,
  ...PUBLISH_FAULTS,
  ...MESSAGE_FAULTS,
  ...TRANSACTION_FAULTS,
  ...LEDGER_FAULTS,
  ...TIMED_FAULTS,
  ...LATER_TIMED_FAULTS,
  ...PAUSE_FAULTS,
  ...TABLE_FAULTS,
  ...MARK_FAULTS,
  ...EVENT_FAULTS,
  ...PERSISTENT_FAULTS,
  ...LONG_FAULTS,
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];
export type CallFault = (typeof CALL_FAULTS)[number] | (typeof RENEWAL_FAULTS)[number];
export type PublishFault = (typeof PUBLISH_FAULTS)[number];
export type MessageFault = (typeof MESSAGE_FAULTS)[number];
export type TransactionFault = (typeof TRANSACTION_FAULTS)[number] | (typeof LEDGER_FAULTS)[number];
export type TimedFault =
  | (typeof TIMED_FAULTS)[number]
  | (typeof LATER_TIMED_FAULTS)[number]
  | (typeof PAUSE_FAULTS)[number]
  | (typeof TABLE_FAULTS)[number]
  | (typeof MARK_FAULTS)[number];

/** Probability per call, publish or message. Faults that are not listed do not happen in the scenario. */
export type FaultRates = Readonly<Partial<Record<FaultKind, number>>>;

/** Draws the faults of one simulation and counts those that fired. */
export class Faults {
  readonly fired = new Map<FaultKind, number>();
  /** Off from the time at which the system must recover. */
  isOn = true;
  readonly #rates: FaultRates;
  readonly #random: SeededRandom;

  constructor(rates: FaultRates, random: SeededRandom) {
    this.#rates = rates;
    this.#random = random;
  }

  /** At most one of these happens. Always uses one draw, so that an added rate does not shift the other draws. */
  draw<Kind extends FaultKind>(kinds: readonly Kind[]): Kind | null {
    let draw = this.#random.next();
    if (!this.isOn) return null;
    for (const kind of kinds) {
      draw -= this.#rates[kind] ?? 0;
      if (draw < 0) return kind;
    }
    return null;
  }

  count(kind: FaultKind): void {
    this.fired.set(kind, (this.fired.get(kind) ?? 0) + 1);
  }
}
