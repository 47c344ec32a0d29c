import { z } from "zod";
import { systemClock } from "../core/clock.ts";
import { isRelayError, reasonOf } from "../core/errors.ts";
import type { EventFilter } from "../operations/event-filter.ts";
import { listEvents } from "../operations/event-list.ts";
import type { OperationTarget } from "../operations/event-source.ts";
import { tailEvents } from "../operations/event-tail.ts";
import { parseEventFilter } from "../operations/filter-language.ts";
import { FILTER_LENGTH_MAX } from "../operations/filter-words.ts";
import { errorSchema, HttpError } from "./http-error.ts";
import { eventStream, type Route, route, type ServerSentEvent } from "./route.ts";
import { requireText } from "./search-rights.ts";

/** Each looks at the database every second, and the API has few connections. */
const TAILS_MAX = 20;

/** Events as they come, for as long as somebody listens. */
export function tailRoute(target: () => OperationTarget): Route {
  let open = 0;
  const contentType = "text/event-stream";
  return route({
    method: "GET",
    path: "/api/v1/events/tail",
    id: "tailEvents",
    summary:
      "Server-sent events: new for one that was written, changed when its state changes, missed when some were left out",
    access: "viewer",
    query: z.strictObject({ q: z.string().max(FILTER_LENGTH_MAX).default("").describe("As of the list") }),
    answers: {
      200: { description: "Until the caller goes", schema: null, contentType },
      403: { description: "text: is for those who may see payloads", schema: errorSchema },
      429: { description: "Too many are listening already", schema: errorSchema },
    },
    handle: async ({ identity, query: { q }, signal }) => {
      const filter = parseEventFilter(q, new Date());
      requireText(target(), identity, filter.text);
      if (open >= TAILS_MAX) {
        const fix = "Close another tail, or try again later.";
        throw new HttpError(429, "TOO_MANY_TAILS", `${TAILS_MAX} tails are open already, and no more can be`, fix);
      }
      open += 1;
      let isOpen = true;
      const close = () => {
        if (isOpen) open -= 1;
        isOpen = false;
      };
      // A stream that nobody began to read ends in silence.
      signal.addEventListener("abort", close, { once: true });
      try {
        // What is wrong with the question or the database is an answer, not an empty stream.
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
    // Whoever listens asks again by itself, and is then told by the status.
    if (!isRelayError(error)) throw error;
    yield { event: "problem", data: { code: error.code, detail: reasonOf(error) } };
  } finally {
    close();
  }
}
