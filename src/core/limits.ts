/** The bounds of the engine: nothing in the relay grows without one of them. */
export interface Limits {
  /** Events in one publish to a destination without transactions. After a crash it bounds the claims of any lane. */
  readonly batchSize: number;
  /** Events in one publish to an exactly-once destination, which is one transaction. */
  readonly transactionSize: number;
  /** Publishes of one lane at a time: one is sent while the other waits for its answer. */
  readonly publishesPerLane: number;
  /** Events in flight (queued, being published, being settled) over all lanes of a pipeline. */
  readonly inFlightEventsMax: number;
  /** Bytes in flight, all parts of the events together. A single larger event is still let through, alone. */
  readonly inFlightBytesMax: number;
  /** Queued events of one key, so that one slow key cannot fill its lane's queue. */
  readonly keyQueueMax: number;
  /** Rows of one page of a run. */
  readonly pageRows: number;
  /**
   * A run ends after this many claimed rows or this much time, because its snapshot holds back vacuum. Rows in flight
   * and skipped rows do not count: otherwise a run could end before it reaches a new event.
   */
  readonly runRowsMax: number;
  readonly runMs: number;
  /** Outcomes written in one settle. */
  readonly settleEventsMax: number;
  /** Claims of dead relays that are freed in one step, where claims are durable. */
  readonly reapRowsMax: number;
  /** An event with a larger payload becomes a dead letter; the payload is never loaded. */
  readonly payloadBytesMax: number;
  readonly headersMax: number;
  /** With this many holds a lane takes no new events: its destination is broken, not the events. */
  readonly holdsPerLaneMax: number;
  /** This many failures in a row with the same error pull the brake. */
  readonly failuresInRowMax: number;
}

/** What the writer checks too, without the other limits. */
export const PAYLOAD_BYTES_MAX = 16 * 1024 * 1024;
export const HEADERS_MAX = 1_000;

/** The limits where no setting changes them. */
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
  payloadBytesMax: PAYLOAD_BYTES_MAX,
  headersMax: HEADERS_MAX,
  holdsPerLaneMax: 10_000,
  failuresInRowMax: 100,
};

/** Durations of the engine, in milliseconds. */
export interface Timing {
  /** How long an instance counts as alive without renewing its heartbeat. */
  readonly leaseMs: number;
  /** How long before the end of its lease the process stops publishing. */
  readonly leaseMarginMs: number;
  /** The pause between polls of an idle source. */
  readonly pollIntervalMs: number;
  /** The pause between runs while there is traffic. */
  readonly pollBusyMs: number;
  /** How often lanes are rebalanced and dead instances are reaped. */
  readonly balanceMs: number;
  readonly publishTimeoutMs: number;
  /** How often holds are compared with their rows, which may have vanished, or been marked or reset by an operator. */
  readonly reviewMs: number;
  /** Event types that no instance takes for this long are reported. */
  readonly unroutedMs: number;
  /** A circuit's first pause before a probe; it doubles up to `circuitMaxMs`. */
  readonly circuitInitialMs: number;
  readonly circuitMaxMs: number;
  /** The first pause after a database error; it doubles up to `backoffMaxMs`. */
  readonly backoffInitialMs: number;
  readonly backoffMaxMs: number;
  /** How long a stop waits for what is in flight. */
  readonly shutdownMs: number;
}

/** The durations where no setting changes them. */
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
