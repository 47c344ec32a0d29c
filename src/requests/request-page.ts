import type { LoggedEvent, LogItem } from "../ports/event-log.ts";
import type { DeadRequest, RequestGroup, RequestJob } from "../ports/request-queue.ts";
import { asksForJob, type RequestFilter } from "./request-filter.ts";
import type { SkipReason } from "./request-listener.ts";
import { referenceOf } from "./request-reference.ts";

interface JobRequest {
  readonly event: LoggedEvent;
  readonly job: RequestJob;
}

interface DeadEvent {
  readonly event: LoggedEvent;
  readonly dead: DeadRequest;
}

interface Skipped {
  readonly event: LoggedEvent | null;
  readonly reason: SkipReason;
  readonly link?: string;
}

/** A page of the log, sorted by what happens to its items. */
export interface SortedPage {
  readonly requested: readonly JobRequest[];
  readonly deadEvents: readonly DeadEvent[];
  readonly skipped: readonly Skipped[];
  /** Null when the page holds no log position. */
  readonly position: string | null;
  /** The last item is the current end of the log. */
  readonly isCaughtUp: boolean;
  readonly newestMs: number | null;
}

interface Sorting {
  readonly group: RequestGroup;
  readonly filter: RequestFilter;
  /** Older events are skipped. */
  readonly sinceMs: number;
  readonly nowMs: number;
}

/** Decides for each item whether it becomes a job, a dead event or is skipped. */
export function sortPage(page: readonly LogItem[], { filter, group, nowMs, sinceMs }: Sorting): SortedPage {
  const requested: JobRequest[] = [];
  const deadEvents: DeadEvent[] = [];
  const skipped: Skipped[] = [];
  let position: string | null = null;
  let newestMs: number | null = null;
  for (const item of page) {
    if (item.kind === "caught up") continue;
    position = item.position;
    if (item.kind === "gone") skipped.push({ event: null, reason: "gone", link: item.link });
    if (item.kind !== "event") continue;
    const { event } = item;
    newestMs = event.createdMs;
    const asks = asksForJob(event, filter);
    if (event.createdMs < sinceMs) skipped.push({ event, reason: "before the start" });
    else if (asks === false) skipped.push({ event, reason: "not an intent" });
    else {
      const unread = { fault: "its metadata is not a JSON object, so it is unknown whether it requests a job" };
      const referenced = asks === null ? unread : referenceOf(event, group, nowMs);
      if ("job" in referenced) requested.push({ event, job: referenced.job });
      else deadEvents.push({ event, dead: deadOf(event, item.position, referenced.fault, nowMs) });
    }
  }
  return { requested, deadEvents, skipped, position, isCaughtUp: page.at(-1)?.kind === "caught up", newestMs };
}

function deadOf(
  { id, revision, stream, type }: LoggedEvent,
  position: string,
  reason: string,
  nowMs: number,
): DeadRequest {
  return {
    eventId: id,
    type,
    stream,
    revision: String(revision),
    position,
    reason,
    at: new Date(nowMs).toISOString(),
  };
}
