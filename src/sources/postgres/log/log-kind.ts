import type { ClaimedEvent, SourceWarning, TypeRule } from "../../../ports/queue-store.ts";

/**
 * A place in a log, as its kind understands it: the segment that is being read, and how far. Everything of the
 * segment up to `mark` lies before it. Marks of one segment rise in the order of reading; the first row's is above 0.
 */
export interface LogPlace<Segment> {
  readonly segment: Segment;
  readonly mark: number;
}

/** A row as it was read. */
export interface LogRow<Segment> extends LogPlace<Segment> {
  readonly event: ClaimedEvent;
}

export interface LogPage<Segment> {
  /** In the order of reading. Events of one key come in the order in which they were written. */
  readonly rows: readonly LogRow<Segment>[];
  /** Where each lane of the pass stands now: behind its last row, and further where nothing more was found. */
  readonly heads: ReadonlyMap<number, LogPlace<Segment>>;
  /** Nothing more at present. A page may be empty and not the last. */
  readonly isEnd: boolean;
  /** Set where the heads have everything behind them that was committed when the pass began, and that is known. */
  readonly isComplete?: boolean;
}

/** One reading of the log, from where each lane stands to the present end. */
export interface LogPass<Segment> {
  /** At most `rows`, and no more after `bytes` of payload are reached; one row at least, if there is one. */
  next(rows: number, bytes: number): Promise<LogPage<Segment>>;
  /** The lane wants nothing more of this pass: later pages neither show its rows nor move its head. */
  leave(lane: number): void;
  /** Lets go of what it holds. Legal at any time, also twice and after an error. */
  end(): Promise<void>;
}

/** What a lane has behind it: everything before `place`, and single rows behind that. */
export interface Checkpoint<Segment> {
  readonly place: LogPlace<Segment>;
  /** Rows that were settled before others that lie in front of them; each is told by its `orderOf`. */
  readonly ahead: readonly LogPlace<Segment>[];
}

export interface PassRequest<Segment> {
  readonly heads: ReadonlyMap<number, LogPlace<Segment>>;
  /** Lanes of the pipeline. */
  readonly laneCount: number;
}

/**
 * One kind of log, as the store reads it: a table by the difference of snapshots, or the server's write-ahead log. It
 * knows how to read on from a place and how to write a place down; what was delivered, held or parked is the store's.
 *
 * Errors as everywhere: a RelayError that names the log and the way out. A place that the log no longer has, or does
 * not have yet, is LOG_LOST: never a silent start somewhere else.
 */
export interface LogKind<Segment> {
  /** True where rows are read in the order that `orderOf` tells, whatever their keys. */
  readonly readsInOrder?: boolean;
  /** What a pipeline of this log can have at most; absent: as many as it likes. */
  readonly lanesMax?: number;
  /** Looks whether the log is there and fit to be read. Legal to repeat. */
  prepare(): Promise<void>;
  /** Where a lane begins that was never read, as it is written down. */
  start(): Promise<string>;
  /** As JSON, for the lane's row. `ahead` is in the order of reading, behind `place`, and bounded. */
  encode(place: LogPlace<Segment>, ahead: readonly LogPlace<Segment>[]): string;
  /** Throws LOG_LOST where the place is not in this log: it was restored, replaced, or is behind. */
  decode(checkpoint: string): Promise<Checkpoint<Segment>>;
  open(request: PassRequest<Segment>): Promise<LogPass<Segment>>;
  /** Cheap: whether a pass would show anything. May be wrong for a moment. */
  probe(request: PassRequest<Segment>): Promise<boolean>;
  /** Rows from these places on that belong to the pipeline, counted up to `max`, and the age of the oldest. */
  backlog(request: PassRequest<Segment>, max: number): Promise<LogBacklog>;
  /** Types among the newest rows that no rule takes, with a count capped at 1,000 each. */
  untaken(
    rules: readonly (readonly TypeRule[])[],
  ): Promise<readonly { readonly type: string; readonly count: number }[]>;
  /** Events by their ids, as they are in the log; absent where they cannot be looked up. Only for ids that are no UUIDs. */
  find?(ids: readonly string[], laneCount: number): Promise<readonly ClaimedEvent[]>;
  /**
   * A number of its own for each row, which orders the rows of a key among all that were ever read; for a table, its
   * position column.
   */
  orderOf(row: LogPlace<Segment>): bigint;
  /**
   * A select of these rows out of the log itself, so that payloads need not travel; absent where they cannot be read
   * again. Its columns are those of PARKED_COLUMNS.
   */
  selectSql?(rows: readonly LogRow<Segment>[]): string;
  /** Every lane has everything before this behind it, by a checkpoint that is written down: it may be forgotten. */
  settled?(places: readonly LogPlace<Segment>[]): void;
  /** As of a store; absent: none ever. */
  warnings?(): Promise<readonly SourceWarning[]>;
  /** Deletes what is older and no pipeline needs any more. Returns how many rows, or parts of the table. */
  prune(olderThanMs: number, rows: number): Promise<number>;
  /** Calls back when something has come in; absent where nothing tells. */
  watch?(onNews: () => void): () => void;
  close?(): Promise<void>;
}

export interface LogBacklog {
  readonly pending: number;
  readonly isEstimate: boolean;
  readonly oldestAgeMs: number | null;
}

/** Columns of `parked` that hold the event itself, in the order in which a kind selects them. */
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
