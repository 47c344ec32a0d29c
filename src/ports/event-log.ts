/** An event as the log has it. */
export interface LoggedEvent {
  readonly id: string;
  readonly type: string;
  readonly stream: string;
  readonly revision: bigint;
  readonly createdMs: number;
  /** As its JSON says; undefined when it is none. */
  readonly data: unknown;
  /** Null when it is no JSON object; empty when there is none. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

/** What a subscription shows, in the order of the log. Whoever goes on after `position` does not see it again. */
export type LogItem =
  | { readonly kind: "event"; readonly position: string; readonly event: LoggedEvent }
  /** A link whose event was deleted, or that cannot be followed. */
  | { readonly kind: "gone"; readonly position: string; readonly link: string }
  /** Nothing for this subscription up to here. */
  | { readonly kind: "passed"; readonly position: string }
  /** Nothing more at present. */
  | { readonly kind: "caught up" };

/** Where a subscription begins: a position of this log, which is text that only the log understands, or one of its ends. */
export type LogStart = { readonly after: string } | "beginning" | "now";

export interface Subscription {
  /** Streams whose names begin with it: `<context>.<aggregate>.request-`. */
  readonly streamPrefix: string;
  readonly from: LogStart;
  /** No page holds more. */
  readonly pageMax: number;
  readonly signal: AbortSignal;
}

export interface NewLoggedEvent {
  readonly id: string;
  readonly type: string;
  readonly data: object;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * A log of events in streams, as KurrentDB keeps it. Any method may throw a RelayError: LOG_UNREACHABLE means that
 * nobody knows whether it took effect, and that it may be tried again.
 */
export interface EventLog {
  /**
   * Pages in the order of the log, each as soon as it has an item, for ever. Ends without an error only when the signal
   * aborts; throws when the server drops it, LOG_LOST when the place to begin at is not there.
   */
  subscribe(subscription: Subscription): AsyncIterable<readonly LogItem[]>;

  /** The events of a stream in their order, at most `max` from `from` on; none when there is no such stream. */
  read(stream: string, from: bigint, max: number): Promise<readonly LoggedEvent[]>;

  /** Reads the last one; null when there is no such stream. */
  readLast(stream: string): Promise<LoggedEvent | null>;

  /**
   * Appends all or nothing, and only while the stream's last revision is this one (null: there is no stream yet), else
   * throws WRONG_REVISION. Repeating it with the same ids changes nothing. Returns the new last revision.
   */
  append(stream: string, last: bigint | null, events: readonly NewLoggedEvent[]): Promise<bigint>;

  /** Throws when the log gives no answer. */
  ping(): Promise<void>;

  close(): Promise<void>;
}
