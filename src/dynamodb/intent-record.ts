import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { EventHeaders, OutboxEvent } from "../core/event.ts";
import type { FailedAttempt } from "../ports/technical-events.ts";

/** An item as the SDK has it. */
export type DynamoDbItem = Record<string, AttributeValue>;

/** An intent in the outbox, as its relay reads it. Times are ISO 8601. */
export interface IntentRecord extends OutboxEvent {
  /** Null until the external system acknowledged it. */
  readonly deliveredAt: string | null;
  /** Failed attempts so far. */
  readonly attemptCount: number;
  readonly lastError: string | null;
  /** The latest failures, the oldest first. */
  readonly errors: readonly FailedAttempt[];
  /** When the sweep retries it; null if no time is set. */
  readonly retryAt: string | null;
  /** A relay has claimed it until then. */
  readonly claimedUntil: string | null;
  /**
   * How often it was claimed since its last recorded failure. More than once means that a relay died while it held the
   * claim, and this intent may be the cause.
   */
  readonly claims: number;
  /** Why it can never be sent: the item is not a readable intent. */
  readonly fault: string | null;
  /** The whole item, also attributes that the relay does not know. */
  readonly item: Readonly<DynamoDbItem>;
}

/** An intent in the dead-letter table. */
export interface DeadLetter extends IntentRecord {
  readonly deadAt: string;
}

/** An intent as the application writes it. */
export interface NewIntent {
  readonly type: string;
  /** A string or bytes are stored unchanged; anything else as JSON. */
  readonly payload: unknown;
  /** The idempotency key: an id is written once. Default: a new UUID, version 7. */
  readonly id?: string | undefined;
  /** The unit of order, usually the aggregate's id. */
  readonly key?: string | null | undefined;
  readonly headers?: EventHeaders | undefined;
  readonly correlationId?: string | null | undefined;
}
