import type { EventHeaders } from "../core/event.ts";

/** One attempt to deliver an event, recorded for people. Times are wall time in ms. */
export interface RecordedAttempt {
  /** When the outcome was known. */
  readonly atMs: number;
  readonly pipeline: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly eventKey: string | null;
  readonly correlationId: string | null;
  /** `dead`: the event failed and is not retried automatically. */
  readonly outcome: "delivered" | "failed" | "dead";
  /**
   * The first attempt is 1. An attempt that failed through no fault of the event does not count: the next has its
   * number.
   */
  readonly attempt: number;
  readonly reason: string | null;
  readonly errorType: string | null;
  readonly target: string;
  /** When the event was written, as the source reports it. */
  readonly writtenAt: string | null;
  readonly claimedAtMs: number | null;
  /** When the publish began; null when nothing was sent. */
  readonly sentAtMs: number | null;
  /** From the send to the answer. */
  readonly durationMs: number | null;
  /** The headers of the sent message; null when nothing was sent. */
  readonly headers: EventHeaders | null;
}

/**
 * Records attempts for people. It is not part of the delivery: it must not wait or throw, and may lose some attempts.
 */
export interface AttemptRecorder {
  /**
   * True when this delivered event is to be recorded; it then counts as recorded. The engine asks for each delivered
   * event, with the monotonic time at which its publish began, so the answer must cost next to nothing.
   */
  takesDelivered(nowMs: number): boolean;
  /** Takes one attempt. The caller does not wait for it to be stored. */
  record(attempt: RecordedAttempt): void;
}
