/** A table whose rows are marked, or a log: the managed outbox, or a table of Debezium's by the server's write-ahead log. */
export type SourceKind = "flag" | "openoutbox" | "managed" | "wal";

/** What the bench tells the relay's process. */
export interface RelayRun {
  readonly kind: SourceKind;
  readonly until: "drained" | "idle for 20 s" | "told to stop";
  /** What the write-ahead log is read through, made before the rows were written; for this kind alone. */
  readonly wal?: { readonly slot: string; readonly publication: string };
  /** Where to; absent: a publisher that acknowledges at once. */
  readonly kafka?: KafkaTarget;
  /** Metrics, logs and tracing around it; absent: none. */
  readonly telemetry?: RelayTelemetry;
  /** Delivered events that are recorded in a second; absent: there is no recorder. */
  readonly recordPerSecond?: number;
  /** So many keys get a dead head before the start. */
  readonly parkedKeys?: number;
}

export interface RelayTelemetry {
  /** Where spans go. */
  readonly tracesUrl: string;
  /** The share of events that is traced. */
  readonly ratio: number;
}

export interface KafkaTarget {
  readonly brokers: string;
  readonly topic: string;
  /** One of its own for each run: the ledger of another would tell of events that are long gone. */
  readonly service: string;
  readonly delivery: "exactly-once" | "at-least-once";
  readonly transactionSize?: number;
}

/** What that process tells in the end. */
export interface RelayResult {
  /** What the publisher that acknowledges at once has seen. */
  readonly delivered: number;
  /** By the system's clock: processes are compared. */
  readonly startedAtMs: number;
  readonly ms: number;
  readonly rssMb: number;
  readonly cpuPercent: number;
  /** What was sent while idle, and how much of it for the source rather than for the process. */
  readonly statements: { readonly all: number; readonly source: number } | null;
}
