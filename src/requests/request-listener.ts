import type { ErrorCode } from "../core/errors.ts";
import type { LoggedEvent } from "../ports/event-log.ts";
import type { DeadRequest, RequestGroup, RequestJob } from "../ports/request-queue.ts";

/** Why an event became no job. */
export type SkipReason = "not an intent" | "already dispatched" | "before the start" | "gone";

/** What a request relay tells of its work; logs, metrics and health are made from it. */
export interface RequestListener {
  dispatched(group: RequestGroup, event: LoggedEvent, job: RequestJob): void;
  /** The event is null when a link led nowhere; then `link` says where. */
  skipped(group: RequestGroup, event: LoggedEvent | null, reason: SkipReason, link?: string): void;
  died(group: RequestGroup, event: LoggedEvent, dead: DeadRequest): void;
  /** How far behind it is; 0 when it has caught up. */
  lag(group: RequestGroup, ms: number): void;
  turned(group: RequestGroup, state: RequestState, why: RequestTrouble | null): void;
}

/** `halted`: only a person can help. `standby`: another process dispatches. */
export type RequestState = "starting" | "standby" | "running" | "broken" | "halted" | "stopped";

export interface RequestTrouble {
  readonly code: ErrorCode;
  readonly reason: string;
}
