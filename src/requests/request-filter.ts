import type { LoggedEvent } from "../ports/event-log.ts";

export const OUTBOX_INTENT = "outbox";

/** Which events ask for a job. */
export interface RequestFilter {
  /** Ends of types that ask by themselves, without a version: `Created` takes `PayoutCreated` and `PayoutCreated.v2`. */
  readonly suffixes: readonly string[];
}

/** By what the event says of itself; null when its metadata cannot be read and its type does not tell. */
export function asksForJob({ metadata, type }: LoggedEvent, { suffixes }: RequestFilter): boolean | null {
  if (metadata?.intent === OUTBOX_INTENT) return true;
  const name = type.replace(/\.v\d+$/i, "");
  if (suffixes.some((suffix) => name.endsWith(suffix))) return true;
  return metadata === null ? null : false;
}
