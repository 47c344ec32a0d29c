import type { LoggedEvent, LogItem } from "../ports/event-log.ts";
import type { DeadRequest, RequestGroup, RequestJob } from "../ports/request-queue.ts";
import { asksForJob, type RequestFilter } from "./request-filter.ts";
import type { SkipReason } from "./request-listener.ts";
import { referenceOf } from "./request-reference.ts";

interface Asked {
  readonly event: LoggedEvent;
  readonly job: RequestJob;
}

interface Buried {
  readonly event: LoggedEvent;
  readonly dead: DeadRequest;
}

interface Skipped {
  readonly event: LoggedEvent | null;
  readonly reason: SkipReason;
  readonly link?: string;
}

/** A page of the log, sorted by what becomes of its items. */
export interface SortedPage {
  readonly asked: readonly Asked[];
  readonly buried: readonly Buried[];
  readonly skipped: readonly Skipped[];
  /** Null when the page holds no place of the log. */
  readonly position: string | null;
  /** Nothing more at present, behind the last item. */
  readonly isCaughtUp: boolean;
  readonly newestMs: number | null;
}

interface Sorting {
  readonly group: RequestGroup;
  readonly filter: RequestFilter;
  /** Older events are passed over. */
  readonly sinceMs: number;
  readonly nowMs: number;
}

export function sortPage(page: readonly LogItem[], { filter, group, nowMs, sinceMs }: Sorting): SortedPage {
  const asked: Asked[] = [];
  const buried: Buried[] = [];
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
      const unread = { fault: "its metadata is no JSON object, so nobody knows whether it asks for a job" };
      const referenced = asks === null ? unread : referenceOf(event, group, nowMs);
      if ("job" in referenced) asked.push({ event, job: referenced.job });
      else buried.push({ event, dead: deadOf(event, item.position, referenced.fault, nowMs) });
    }
  }
  return { asked, buried, skipped, position, isCaughtUp: page.at(-1)?.kind === "caught up", newestMs };
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
