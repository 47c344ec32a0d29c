import type { ErrorCode } from "../core/errors.ts";
import type { LoggedEvent } from "../ports/event-log.ts";
import type { DeadRequest, RequestGroup, RequestJob } from "../ports/request-queue.ts";

/** Why an event became no job. */
export type SkipReason = "not an intent" | "already dispatched" | "before the start" | "gone";

/** Callbacks for the work of a request relay. Logs, metrics and health are built on them. */
export interface RequestListener {
  dispatched(group: RequestGroup, event: LoggedEvent, job: RequestJob): void;
  /** The event is null when a link points to a deleted event; `link` then names its target. */
  skipped(group: RequestGroup, event: LoggedEvent | null, reason: SkipReason, link?: string): void;
  died(group: RequestGroup, event: LoggedEvent, dead: DeadRequest): void;
  /** The age of the newest event read; 0 once the relay has caught up. */
  lag(group: RequestGroup, ms: number): void;
  turned(group: RequestGroup, state: RequestState, why: RequestFailure | null): void;
}

/** `halted`: an operator must act. `standby`: another process dispatches. */
export type RequestState = "starting" | "standby" | "running" | "broken" | "halted" | "stopped";

/** Why a context is `broken` or `halted`. */
export interface RequestFailure {
  readonly code: ErrorCode;
  readonly reason: string;
}
