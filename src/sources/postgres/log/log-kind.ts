import type { ClaimedEvent, SourceWarning, TypeRule } from "../../../ports/queue-store.ts";

/**
 * A position in a log, as its kind defines it: the segment being read, and how far. Everything of the segment up to
 * `mark` lies before the position. Marks of one segment rise in the order of reading; the first row's is above 0.
 */
export interface LogPosition<Segment> {
  readonly segment: Segment;
  readonly mark: number;
}

/** A row as it was read. */
export interface LogRow<Segment> extends LogPosition<Segment> {
  readonly event: ClaimedEvent;
}

/** What one read returns. */
export interface LogPage<Segment> {
  /** In the order of reading. Events of one key come in the order in which they were written. */
  readonly rows: readonly LogRow<Segment>[];
  /** The new position of each lane of the pass: after its last row, and further where nothing more was found. */
  readonly heads: ReadonlyMap<number, LogPosition<Segment>>;
  /** Nothing more at present. A page can be empty without being the last. */
  readonly isEnd: boolean;
  /** Set when the heads have passed everything that was committed when the pass began, for certain. */
  readonly isComplete?: boolean;
}

/** One pass over the log, from each lane's position to the present end. */
export interface LogPass<Segment> {
  /** At most `rows`, and no more once `bytes` of payload are reached; at least one row, if there is one. */
  next(rows: number, bytes: number): Promise<LogPage<Segment>>;
  /** The lane leaves this pass: later pages neither contain its rows nor move its head. */
  leave(lane: number): void;
  /** Releases what it holds. Safe at any time, also twice and after an error. */
  end(): Promise<void>;
}

/** What a lane has settled: everything before `place`, and single rows beyond it. */
export interface Checkpoint<Segment> {
  readonly place: LogPosition<Segment>;
  /** Rows that were settled before others in front of them; each is identified by its `orderOf`. */
  readonly ahead: readonly LogPosition<Segment>[];
}

/** The lanes of a pass and their positions. */
export interface PassRequest<Segment> {
  readonly heads: ReadonlyMap<number, LogPosition<Segment>>;
  /** Lanes of the pipeline. */
  readonly laneCount: number;
}

/**
 * One kind of log, as the store reads it: a table by differences of snapshots, or the server's write-ahead log. It
 * knows how to read on from a position and how to write a position down. Delivered, held and parked events are the
 * store's concern.
 *
 * Errors are RelayErrors that name the log and the fix. A position that the log no longer has, or does not have yet, is
 * LOG_LOST: a log never silently starts somewhere else.
 */
export interface LogKind<Segment> {
  /** True where rows are read in the order of `orderOf`, whatever their keys. */
  readonly readsInOrder?: boolean;
  /** The highest number of lanes; absent: no limit. */
  readonly lanesMax?: number;
  /** Checks that the log exists and can be read. Safe to repeat. */
  prepare(): Promise<void>;
  /** The start position of a lane that was never read, as text. */
  start(): Promise<string>;
  /** The checkpoint as JSON, for the lane's row. `ahead` is in the order of reading, beyond `place`, and bounded. */
  encode(place: LogPosition<Segment>, ahead: readonly LogPosition<Segment>[]): string;
  /** Throws LOG_LOST when the position is not in this log: the log was restored, replaced, or is behind. */
  decode(checkpoint: string): Promise<Checkpoint<Segment>>;
  open(request: PassRequest<Segment>): Promise<LogPass<Segment>>;
  /** Cheap check whether a pass would show anything. It may be wrong for a moment. */
  probe(request: PassRequest<Segment>): Promise<boolean>;
  /** Counts the pipeline's rows from these positions on, up to `max`, with the age of the oldest. */
  backlog(request: PassRequest<Segment>, max: number): Promise<LogBacklog>;
  /** Types among the newest rows that match no rule, each with a count of at most 1,000. */
  unrouted(
    rules: readonly (readonly TypeRule[])[],
  ): Promise<readonly { readonly type: string; readonly count: number }[]>;
  /**
   * Events by their ids, as they are in the log; absent where they cannot be looked up. Only for ids that are not
   * UUIDs.
   */
  find?(ids: readonly string[], laneCount: number): Promise<readonly ClaimedEvent[]>;
  /**
   * A unique number for each row, which orders the rows of a key among all rows ever read; for a table, its position
   * column.
   */
  orderOf(row: LogPosition<Segment>): bigint;
  /**
   * A select of these rows from the log itself, so that payloads need not travel; absent where they cannot be read
   * again. Its columns are those of PARKED_COLUMNS.
   */
  selectSql?(rows: readonly LogRow<Segment>[]): string;
  /** Every lane has a written checkpoint beyond this position: the log may forget what lies before it. */
  settled?(places: readonly LogPosition<Segment>[]): void;
  /** As in a store; absent: there are never any. */
  warnings?(): Promise<readonly SourceWarning[]>;
  /** Deletes old rows that no pipeline needs any more. Returns the number of rows, or of dropped partitions. */
  prune(olderThanMs: number, rows: number): Promise<number>;
  /** Calls back when something has arrived; absent where there are no notifications. */
  watch?(onNews: () => void): () => void;
  close?(): Promise<void>;
}

/** What a log has left to read, for the metrics. */
export interface LogBacklog {
  readonly pending: number;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
}

/** The columns of `parked` that hold the event itself, in the order in which a kind selects them. */
export const PARKED_COLUMNS = [
  "place",
  "event_id",
  "event_type",
  "event_key",
  "payload",
  "headers",
  "correlation_id",
  "created_at",
] as const;
