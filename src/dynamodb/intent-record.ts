import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { Headers, OutboxEvent } from "../core/event.ts";
import type { FailedAttempt } from "../ports/technical-events.ts";

export type Item = Record<string, AttributeValue>;

/** An intent in the outbox, as its relay reads it. Times are ISO 8601. */
export interface IntentRecord extends OutboxEvent {
  /** Null until the external system acknowledged it. */
  readonly deliveredAt: string | null;
  /** Failures so far. */
  readonly attemptCount: number;
  readonly lastError: string | null;
  /** The latest failures, the oldest first. */
  readonly errors: readonly FailedAttempt[];
  /** When the sweep takes it up; null where nobody has said. */
  readonly retryAt: string | null;
  /** Somebody has it in hand until then. */
  readonly claimedUntil: string | null;
  /** How often it was taken in hand since it last failed: more than once when whoever had it died of it, or beside it. */
  readonly claims: number;
  /** Why it cannot be sent, whatever happens: the item has another shape. */
  readonly fault: string | null;
  /** All of it, also what the relay knows nothing of. */
  readonly item: Readonly<Item>;
}

/** What stands in the dead-letter table. */
export interface DeadLetter extends IntentRecord {
  readonly deadAt: string;
}

/** An intent as the application writes it. */
export interface NewIntent {
  readonly type: string;
  /** A text or bytes are kept as they are; anything else as its JSON. */
  readonly payload: unknown;
  /** The idempotency key: one is written once. Absent: a new UUID, version 7. */
  readonly id?: string | undefined;
  /** The unit of order, usually the aggregate's id. */
  readonly key?: string | null | undefined;
  readonly headers?: Headers | undefined;
  readonly correlationId?: string | null | undefined;
}
