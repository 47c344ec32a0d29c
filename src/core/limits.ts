/** Nothing in the relay grows without one of these. */
export interface Limits {
  /** Events in one publish. */
  readonly batchSize: number;
  /** Events in one transaction, where the destination has them. */
  readonly transactionSize: number;
  /** Publishes of one lane at a time: one is on the wire while the answer to the other is awaited. */
  readonly publishesPerLane: number;
  /** Events in flight (queued, being published, being settled) over all lanes of a pipeline. */
  readonly inFlightEventsMax: number;
  /** Their bytes, all parts of the events together; a single larger event is still let through alone. */
  readonly inFlightBytesMax: number;
  /** Queued events of one key, so that one slow key cannot fill its lane's queue. */
  readonly keyQueueMax: number;
  /** Rows of one page of a run. */
  readonly pageRows: number;
  /**
   * A run ends after so many claimed rows or so much time: its snapshot holds back vacuum. What is in flight or passed
   * over does not count, or a run could end before it reaches anything new.
   */
  readonly runRowsMax: number;
  readonly runMs: number;
  /** Outcomes written in one settle. */
  readonly settleEventsMax: number;
  /** Claims of dead relays that are freed in one step, where a table keeps its claims itself. */
  readonly reapRowsMax: number;
  /** A larger payload is a dead letter without ever being loaded. */
  readonly payloadBytesMax: number;
  readonly headersMax: number;
  /** From so many holds on a lane takes nothing new: its destination is broken, not the events. */
  readonly holdsPerLaneMax: number;
  /** So many failures in a row with one error pull the brake. */
  readonly failuresInRowMax: number;
}

export const DEFAULT_LIMITS: Limits = {
  batchSize: 500,
  transactionSize: 5_000,
  publishesPerLane: 2,
  inFlightEventsMax: 10_000,
  inFlightBytesMax: 16 * 1024 * 1024,
  keyQueueMax: 500,
  pageRows: 1_000,
  runRowsMax: 100_000,
  runMs: 10_000,
  settleEventsMax: 2_000,
  reapRowsMax: 1_000,
  payloadBytesMax: 16 * 1024 * 1024,
  headersMax: 1_000,
  holdsPerLaneMax: 10_000,
  failuresInRowMax: 100,
};

/** Durations of the engine, in milliseconds. */
export interface Timing {
  /** How long an instance lives without renewing its heartbeat. */
  readonly leaseMs: number;
  /** The process stops publishing so long before its lease ends. */
  readonly leaseMarginMs: number;
  readonly pollIntervalMs: number;
  /** The pause between runs while there is traffic. */
  readonly pollBusyMs: number;
  /** Lanes are shared out anew, dead instances are looked for. */
  readonly balanceMs: number;
  readonly publishTimeoutMs: number;
  /** Holds are compared with their rows: vanished, marked or reset by people. */
  readonly reviewMs: number;
  /** Events that nobody takes for so long are told. */
  readonly unroutedMs: number;
  /** A circuit's first pause before a probe; doubles up to the second. */
  readonly circuitInitialMs: number;
  readonly circuitMaxMs: number;
  /** The first pause after an error of the database; doubles up to the second. */
  readonly backoffInitialMs: number;
  readonly backoffMaxMs: number;
  readonly shutdownMs: number;
}

export const DEFAULT_TIMING: Timing = {
  leaseMs: 10_000,
  leaseMarginMs: 2_000,
  pollIntervalMs: 500,
  pollBusyMs: 2,
  balanceMs: 1_000,
  publishTimeoutMs: 5_000,
  reviewMs: 10_000,
  unroutedMs: 60_000,
  circuitInitialMs: 200,
  circuitMaxMs: 30_000,
  backoffInitialMs: 100,
  backoffMaxMs: 5_000,
  shutdownMs: 10_000,
};
