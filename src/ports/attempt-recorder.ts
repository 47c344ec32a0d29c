import type { Headers } from "../core/event.ts";

/** One attempt to deliver an event, as people look at it later. Times are wall time in ms. */
export interface RecordedAttempt {
  /** When its outcome was known. */
  readonly atMs: number;
  readonly pipeline: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly eventKey: string | null;
  readonly correlationId: string | null;
  /** `dead`: it failed, and is not tried again by itself. */
  readonly outcome: "delivered" | "failed" | "dead";
  /** The first is 1. One that was no fault of the event has the number of the next. */
  readonly attempt: number;
  readonly reason: string | null;
  readonly errorType: string | null;
  readonly target: string;
  /** As the source tells it. */
  readonly writtenAt: string | null;
  readonly claimedAtMs: number | null;
  /** Null when nothing was sent. */
  readonly sentAtMs: number | null;
  /** From the sending to the answer. */
  readonly durationMs: number | null;
  /** As they were sent; null when nothing was. */
  readonly headers: Headers | null;
}

/** Keeps attempts for people. No part of the delivery: it never waits, never throws, and may lose some. */
export interface AttemptRecorder {
  /**
   * Whether a delivered event is to be recorded now, and if so, it counts as recorded. Asked for each one, with the
   * monotonic time at which its publish began: it has to cost nothing.
   */
  takesDelivered(nowMs: number): boolean;
  record(attempt: RecordedAttempt): void;
}
