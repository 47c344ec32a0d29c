import type { SeededRandom } from "./seeded-random.ts";

/** What can happen to one call of a store. */
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

/** What can happen to a renewal of the lease besides: too late to be of use, or nearly so. */
export const RENEWAL_FAULTS = ["late renewal"] as const;

/** What can happen to one publish as a whole. */
export const PUBLISH_FAULTS = [
  "slow publish",
  "connection lost",
  "crash before publish",
  "crash amid publish",
  "pause before publish",
  "pause amid publish",
] as const;

/** What can happen to one message. */
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

/** What can happen to one request of a transaction. */
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

/** What can happen besides when the ledger is read. */
export const LEDGER_FAULTS = ["ledger unreachable"] as const;

/** What happens at a moment of its own, and is listed in the scenario. */
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

/** As those, of later seeds. */
export const LATER_TIMED_FAULTS = ["instance taken for dead"] as const;

/** A person stops a pipeline for a while, and may want its lanes too. */
export const PAUSE_FAULTS = ["pipeline paused"] as const;

/** Somebody drops a column and adds it again; maintenance locks the table, so that reads stand still. */
export const TABLE_FAULTS = ["column missing", "maintenance lock"] as const;

/** What is wrong with an event from the beginning, so that it fails whenever it is sent. */
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
 * What stays when all other faults are over. An event whose receiver answers it, and nobody else, as if the topic or
 * the destination took nothing; a destination that takes the events of one key only; and rows that are larger than all
 * that may be in memory, in whichever column.
 */
const PERSISTENT_FAULTS = ["refused as topic", "refused as destination", "one key only", "wide row"] as const;

/** Longer than everything else takes together: a few seeds have it. */
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
  | (typeof TABLE_FAULTS)[number];

/** Chance per call, publish or message. What is not listed does not happen in this scenario. */
export type FaultRates = Readonly<Partial<Record<FaultKind, number>>>;

/** Draws the faults of one simulation and counts those that fired. */
export class Faults {
  readonly fired = new Map<FaultKind, number>();
  /** Off from the moment at which everything must heal. */
  isOn = true;
  readonly #rates: FaultRates;
  readonly #random: SeededRandom;

  constructor(rates: FaultRates, random: SeededRandom) {
    this.#rates = rates;
    this.#random = random;
  }

  /** At most one of these happens; always costs one draw, so that one rate more shifts nothing. */
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
