/** Names are kept as written; values are text. */
export type Headers = Readonly<Record<string, string>>;

/** What is delivered. The payload is opaque: nobody between source and destination parses or re-encodes it. */
export interface OutboxEvent {
  /** Unique within its source; the idempotency key that reaches every destination. */
  readonly id: string;
  readonly type: string;
  /** The unit of order, usually the aggregate's id. Events without a key have no order and are never held back. */
  readonly key: string | null;
  readonly payload: Buffer;
  readonly headers: Headers;
  readonly correlationId: string | null;
  /** ISO 8601 in UTC, with the precision that the source stored; null when the row has none. */
  readonly createdAt: string | null;
}

/** An event on its way to one destination. */
export interface Message {
  readonly event: OutboxEvent;
  readonly topic: string;
  readonly key: string | null;
  readonly headers: Headers;
  readonly payload: Buffer;
}
