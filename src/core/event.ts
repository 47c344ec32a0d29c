/** The headers of an event. Names keep their case; values are text. */
export type EventHeaders = Readonly<Record<string, string>>;

/** The unit of delivery. The payload is opaque: the relay neither parses nor re-encodes it. */
export interface OutboxEvent {
  /** Unique within the source. It reaches every destination as the idempotency key. */
  readonly id: string;
  readonly type: string;
  /** The unit of order, usually the aggregate's id. Events without a key have no order and are never parked. */
  readonly key: string | null;
  readonly payload: Buffer;
  readonly headers: EventHeaders;
  readonly correlationId: string | null;
  /** ISO 8601 in UTC, with the precision that the source stored; null when the row has none. */
  readonly createdAt: string | null;
}

/** An event on its way to one destination. */
export interface Message {
  readonly event: OutboxEvent;
  readonly topic: string;
  readonly key: string | null;
  readonly headers: EventHeaders;
  readonly payload: Buffer;
}

/** The limit in bytes of the type, the key, the correlation id and the trace of an event, each. */
export const TEXT_BYTES_MAX = 8 * 1024;
/** The limit in bytes of an event's headers as JSON. */
export const HEADERS_BYTES_MAX = 256 * 1024;

/**
 * The reason for an event with a part beyond its limit. The part is never loaded, and the event becomes a dead letter.
 */
export function tooLarge(part: string, bytes: number | string, bytesMax: number): string {
  return `the ${part} has ${bytes} bytes, more than the ${bytesMax} that are allowed`;
}

/** The approximate size of an event in memory, all parts together. */
export function eventBytes(event: OutboxEvent): number {
  const { id, type, key, correlationId, headers, payload } = event;
  let characters = id.length + type.length + (key?.length ?? 0) + (correlationId?.length ?? 0);
  for (const name in headers) characters += name.length + headers[name]!.length;
  // Two bytes per character: a single character beyond Latin-1 makes the whole text take as much.
  return payload.length + 2 * characters;
}
