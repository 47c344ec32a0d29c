/** An event as the log stores it. */
export interface LoggedEvent {
  readonly id: string;
  readonly type: string;
  readonly stream: string;
  readonly revision: bigint;
  readonly createdMs: number;
  /** The parsed JSON; undefined when the data is not JSON. */
  readonly data: unknown;
  /** Null when the metadata is not a JSON object; empty when there is none. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

/**
 * What a subscription delivers, in the order of the log. A reader that continues after `position` does not see it
 * again.
 */
export type LogItem =
  | { readonly kind: "event"; readonly position: string; readonly event: LoggedEvent }
  /** A link whose event was deleted, or that cannot be resolved. */
  | { readonly kind: "gone"; readonly position: string; readonly link: string }
  /** The log holds nothing for this subscription up to here. */
  | { readonly kind: "passed"; readonly position: string }
  /** The subscription has read everything that the log holds. */
  | { readonly kind: "caught up" };

/**
 * Where a subscription begins: after a position, which is opaque text that only this log understands, or at one of its
 * ends.
 */
export type LogStart = { readonly after: string } | "beginning" | "now";

/** What a reader subscribes to. */
export interface Subscription {
  /** Streams whose names begin with this prefix: `<context>.<aggregate>.request-`. */
  readonly streamPrefix: string;
  readonly from: LogStart;
  /** Items in one page, at most. */
  readonly pageMax: number;
  readonly signal: AbortSignal;
}

/** An event to append. The caller chooses the id: a repeated append with the same id changes nothing. */
export interface NewLoggedEvent {
  readonly id: string;
  readonly type: string;
  readonly data: object;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * A log of events in streams, as in KurrentDB. Any method may throw a RelayError: LOG_UNREACHABLE means that it is
 * unknown whether the call took effect, and that the caller may retry it.
 */
export interface EventLog {
  /**
   * Delivers pages in the order of the log, for ever, each as soon as it has an item. Ends without an error only when
   * the signal aborts. Throws when the server drops the subscription, and LOG_LOST when the start position does not
   * exist.
   */
  subscribe(subscription: Subscription): AsyncIterable<readonly LogItem[]>;

  /**
   * The events of a stream in order, at most `max`, beginning at revision `from`; none when the stream does not exist.
   */
  read(stream: string, from: bigint, max: number): Promise<readonly LoggedEvent[]>;

  /** The last event of a stream; null when the stream does not exist. */
  readLast(stream: string): Promise<LoggedEvent | null>;

  /**
   * Appends all events or none, and only while `last` is the stream's last revision (null: the stream does not exist
   * yet); otherwise it throws WRONG_REVISION. A repeated append with the same ids changes nothing. Returns the new last
   * revision.
   */
  append(stream: string, last: bigint | null, events: readonly NewLoggedEvent[]): Promise<bigint>;

  /** Throws when the log does not answer. */
  ping(): Promise<void>;

  close(): Promise<void>;
}
