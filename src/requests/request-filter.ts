import type { LoggedEvent } from "../ports/event-log.ts";

/** The value of `metadata.intent` by which an event requests a job. */
export const OUTBOX_INTENT = "outbox";

/** The suffixes where none are named: those of events that begin a request. */
export const USUAL_SUFFIXES: readonly string[] = ["Created", "Queued"];

/** Which events request a job. */
export interface RequestFilter {
  /** Type suffixes that request a job, without a version: `Created` matches `PayoutCreated` and `PayoutCreated.v2`. */
  readonly suffixes: readonly string[];
}

/** Whether the event requests a job; null when its metadata cannot be read and its type does not match a suffix. */
export function asksForJob({ metadata, type }: LoggedEvent, { suffixes }: RequestFilter): boolean | null {
  if (metadata?.intent === OUTBOX_INTENT) return true;
  const name = type.replace(/\.v\d+$/i, "");
  if (suffixes.some((suffix) => name.endsWith(suffix))) return true;
  return metadata === null ? null : false;
}
