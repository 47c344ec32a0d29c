import { z } from "zod";
import { systemClock } from "../../core/clock.ts";
import { isRelayError, reasonOf } from "../../core/errors.ts";
import type { EventFilter } from "../../operations/events/event-filter.ts";
import { listEvents } from "../../operations/events/event-list.ts";
import type { OperationTarget } from "../../operations/events/event-source.ts";
import { tailEvents } from "../../operations/events/event-tail.ts";
import { parseEventFilter } from "../../operations/filter/filter-language.ts";
import { FILTER_LENGTH_MAX } from "../../operations/filter/filter-words.ts";
import { errorSchema, HttpError } from "../http-error.ts";
import { eventStream, type Route, route, type ServerSentEvent } from "../route.ts";
import { requireSearchable } from "../search-rights.ts";

/** Each tail queries the database every second, and the API has few connections. */
const TAILS_MAX = 20;

/** Streams new and changed events until the client disconnects. */
export function tailRoute(target: () => OperationTarget): Route {
  let open = 0;
  const contentType = "text/event-stream";
  return route({
    method: "GET",
    path: "/api/v1/events/tail",
    id: "tailEvents",
    summary:
      "Server-sent events: new when an event was written, changed when its state changes, missed when events were skipped",
    access: "viewer",
    query: z.strictObject({ q: z.string().max(FILTER_LENGTH_MAX).default("").describe("As for GET /api/v1/events") }),
    answers: {
      200: { description: "Streams until the client disconnects", schema: null, contentType },
      403: { description: "text: and payload. require the right to see payloads", schema: errorSchema },
      429: { description: "Too many tails are open", schema: errorSchema },
    },
    handle: async ({ identity, query: { q }, signal }) => {
      const filter = parseEventFilter(q, new Date());
      requireSearchable(target(), identity, filter);
      if (open >= TAILS_MAX) {
        const fix = "Close another tail, or retry later.";
        throw new HttpError(429, "TOO_MANY_TAILS", `${TAILS_MAX} tails are open, the maximum`, fix);
      }
      open += 1;
      let isOpen = true;
      const close = () => {
        if (isOpen) open -= 1;
        isOpen = false;
      };
      // An abort before the first read ends the stream without an error.
      signal.addEventListener("abort", close, { once: true });
      try {
        // An invalid filter or a failing database must give an error response, not an empty stream.
        await listEvents(target(), filter, { limit: 1, glanceRows: 1 });
        return eventStream(tailed(target(), filter, signal, close));
      } catch (error) {
        close();
        throw error;
      }
    },
  });
}

async function* tailed(
  target: OperationTarget,
  filter: EventFilter,
  signal: AbortSignal,
  close: () => void,
): AsyncGenerator<ServerSentEvent> {
  let hasMissed = false;
  const missed = () => {
    hasMissed = true;
  };
  try {
    for await (const { event, what } of tailEvents(target, filter, { clock: systemClock, signal, missed })) {
      if (hasMissed) yield { event: "missed", data: {} };
      hasMissed = false;
      yield { event: what, data: event };
    }
  } catch (error) {
    // The client reconnects by itself, and the status of that response carries the error.
    if (!isRelayError(error)) throw error;
    yield { event: "problem", data: { code: error.code, detail: reasonOf(error) } };
  } finally {
    close();
  }
}
