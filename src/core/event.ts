/** The headers of an event. Names keep their case; values are text. */
export type Headers = Readonly<Record<string, string>>;

/** The unit of delivery. The payload is opaque: the relay neither parses nor re-encodes it. */
export interface OutboxEvent {
  /** Unique within the source. It reaches every destination as the idempotency key. */
  readonly id: string;
  readonly type: string;
  /** The unit of order, usually the aggregate's id. Events without a key have no order and are never parked. */
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
