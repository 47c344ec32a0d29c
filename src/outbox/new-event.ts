import type { EventHeaders } from "../core/event.ts";

/** An event as the application writes it. */
export interface NewEvent<Type extends string = string, Payload = unknown> {
  /** Selects the topic, subject or routing key, unless a route overrides it. */
  readonly type: Type;
  /** The unit of order, usually the aggregate's id. */
  readonly key?: string | null | undefined;
  /** A text or bytes are sent unchanged; anything else as its JSON. */
  readonly payload: Payload;
  /** The idempotency key: writing it again changes nothing. Absent: a new UUID, version 7. */
  readonly id?: string | undefined;
  readonly headers?: EventHeaders | undefined;
  readonly correlationId?: string | null | undefined;
  /** W3C trace context. Absent: that of the active span, if OpenTelemetry is installed. */
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
  /** Values for further columns of the table, by their names. */
  readonly columns?: Readonly<Record<string, string | number | boolean | null>> | undefined;
}
