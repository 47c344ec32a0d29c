import { RelayError } from "../core/errors.ts";
import type { EventLog, LoggedEvent } from "../ports/event-log.ts";
import { type OutcomeTypes, type RequestView, viewOf } from "./request-view.ts";

/** A request's stream and what it says about one job. */
export interface ReadRequest {
  readonly events: readonly LoggedEvent[];
  readonly view: RequestView;
}

const PAGE = 500;
/** A stream holds one request; a longer one is not a request's stream. */
const EVENTS_MAX = 20_000;

/** Reads a request's stream. Throws EVENT_INVALID when it does not hold the event that requested the job. */
export async function readRequest(
  log: EventLog,
  stream: string,
  jobId: string,
  types: OutcomeTypes,
): Promise<ReadRequest> {
  const events: LoggedEvent[] = [];
  let from = 0n;
  for (;;) {
    const page = await log.read(stream, from, PAGE);
    events.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    if (events.length >= EVENTS_MAX) {
      throw new RelayError("EVENT_INVALID", `The stream ${stream} has more than ${EVENTS_MAX} events.`);
    }
    from = last.revision + 1n;
  }
  const view = viewOf(events, jobId, types);
  if (view !== null) return { events, view };
  const has = events.length === 0 ? "does not exist or is empty" : `has ${events.length} events but none with this id`;
  throw new RelayError("EVENT_INVALID", `Job ${jobId} refers to an event of the stream ${stream}, which ${has}.`);
}
